/** A node with static pods that read one directory, as a rollout finds it. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { DurableCalls } from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { silent } from '../../../src/log.js'
import type { Probe, ProbeResult } from '../../../src/static-pods/ready/readiness.js'
import { resume, rollout, type RolloutMeans, type RolloutOutcome } from '../../../src/static-pods/rollout/rollout.js'
import { readManifests, type RolloutRequest } from '../../../src/static-pods/rollout/rollout-plan.js'
import { readRolloutTree } from '../../../src/static-pods/rollout/rollout-tree.js'
import { rest, uptime } from '../passing-time.js'
import { contents, podText, scratch } from '../pods.js'
import { isKind } from '../../crash/judge/names.js'

export const noSettings = { readyFor: 0, urls: [], authority: null, commands: [], kubelet: null, mirrorPod: null }

export class RolledNode {
  readonly root: string
  readonly manifests: string
  readonly pki: string

  /** Each pod runs its image `NAME:1`, and reads pki, which holds `old`. */
  constructor(
    t: Test,
    private readonly pods: readonly string[] = ['web'],
    parent?: string,
  ) {
    this.root = scratch(t, parent)
    this.manifests = join(this.root, 'manifests')
    this.pki = join(this.root, 'pki')
    mkdirSync(this.manifests)
    mkdirSync(join(this.pki, 'etcd'), { recursive: true })
    writeFileSync(join(this.pki, 'ca.crt'), 'old')
    writeFileSync(join(this.pki, 'etcd', 'ca.crt'), 'old')
    for (const pod of pods) writeFileSync(this.live(pod), this.text(pod, 1), { mode: 0o640 })
  }

  live(pod = 'web'): string {
    return join(this.manifests, `${pod}.yaml`)
  }

  text(pod: string, version: number): string {
    // As people write it: what goes back must be this, not a form of it.
    const text = podText(
      { name: pod, labels: { app: pod } },
      { containers: [{ name: pod, image: `${pod}:${version}` }] },
    )
    return `# ${pod}\n${text}\n`
  }

  /** A file with a manifest of this version, outside of the manifest directory. */
  source(pod: string, version: number, name = `${pod}-new.yaml`): string {
    const path = join(this.root, name)
    writeFileSync(path, this.text(pod, version))
    return path
  }

  /** New content for pki. */
  staged(text = 'new'): string {
    const path = join(this.root, 'pki.new')
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'ca.crt'), text)
    writeFileSync(join(path, 'sa.key'), text, { mode: 0o600 })
    return path
  }

  /** Version 2 of each pod, or of these. */
  async request({
    tree = false,
    pods = this.pods,
    ...more
  }: Partial<Omit<RolloutRequest, 'tree'>> & {
    tree?: boolean
    pods?: readonly string[]
  } = {}): Promise<RolloutRequest> {
    return {
      manifestDirectory: this.manifests,
      manifests: await readManifests(pods.map((pod) => this.source(pod, 2))),
      tree: tree ? await readRolloutTree(this.staged(), this.pki, false) : undefined,
      manifestLock: join(this.root, 'installer.lock'),
      timeout: 0,
      fallback: true,
      allowOlder: false,
      requireProven: false,
      readiness: noSettings,
      ...more,
    }
  }

  async rollout(request: RolloutRequest, answer: Answer, means: Partial<RolloutMeans> & { fs?: FileSystem } = {}) {
    return rollout(request, meansOf(answer, means))
  }

  async resume(answer: Answer, means: Partial<RolloutMeans> = {}): Promise<RolloutOutcome> {
    return resume(this.manifests, meansOf(answer, means))
  }

  /** The version of each manifest: `1` or `2` for a whole one of this version, its text otherwise. */
  versions(): Record<string, string> {
    return Object.fromEntries(
      this.pods.map((pod) => {
        const text = readFileSync(this.live(pod), 'utf8')
        if (text === this.text(pod, 1)) return [pod, '1']
        // The comment above the JSON stays.
        const { metadata, spec } = JSON.parse(text.replace(/^# .*\n/, '')) as {
          metadata: { annotations?: Record<string, string> }
          spec: { containers: { image: string }[] }
        }
        const isMarked = /^[0-9a-f]{16}$/.test(metadata.annotations?.['holdfast.dev/rollout'] ?? '')
        return [pod, isMarked && spec.containers[0]?.image === `${pod}:2` ? '2' : text]
      }),
    )
  }

  /** `old` or `new` for a whole tree; its content otherwise. */
  tree(): unknown {
    const found = contents(this.pki)
    const text = JSON.stringify(found)
    if (text === JSON.stringify({ 'ca.crt': 'old', 'etcd/ca.crt': 'old' })) return 'old'
    if (text === JSON.stringify({ 'ca.crt': 'new', 'sa.key': 'new' })) return 'new'
    return found
  }

  /** Names that no finished rollout leaves. */
  left(): string[] {
    const isLeft = (name: string) => /^\.holdfast-([0-9a-f]{16}-|rollout-)/.test(name)
    const records = readdirSync(this.root).filter(isKind('record'))
    return [...readdirSync(this.root), ...readdirSync(this.manifests)].filter(isLeft).concat(records)
  }
}

/** The same file system; on machines of tests, process 1 may be another user's, and its files are nothing of a test's. */
export function seeing(fs: FileSystem): FileSystem {
  return new Proxy(fs, {
    get(target, property: keyof FileSystem) {
      const value: unknown = Reflect.get(target, property)
      if (property === 'userOf') {
        return async (...args: Parameters<FileSystem['userOf']>) => {
          const user = await fs.userOf(...args)
          return user?.startsWith('process 1 may not be looked at') ? undefined : user
        }
      }
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** The answer of a manifest's pod. */
export type Answer = (pod: string, image: string) => ProbeResult['state']

function meansOf(answer: Answer, { fs, timing, ...more }: Partial<RolloutMeans> & { fs?: FileSystem }): RolloutMeans {
  const probe: Probe = {
    name: 'probe',
    identifiesPod: true,
    ask: ({ name, pod, annotations }) => {
      const { containers } = pod.spec as { containers: { image: string }[] }
      // What came before the first rollout runs.
      const isOld = !('holdfast.dev/rollout' in annotations)
      const state = isOld ? 'ready' : answer(name, containers[0]?.image ?? '')
      return Promise.resolve(state === 'ready' ? { state } : { state, message: `${name} says no`, advice: 'mend it' })
    },
  }
  return {
    durable: new DurableCalls(Object.assign(seeing(fs ?? new NodeFileSystem()), { uptime })),
    log: silent,
    signal: new AbortController().signal,
    openProbes: (_settings, _files, isTrial) => Promise.resolve(isTrial ? [] : [probe]),
    timing: { interval: 20, handover: 0, rest, ...timing },
    ...more,
  }
}
