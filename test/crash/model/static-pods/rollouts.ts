/*
 * Rollouts on the model disk: two pods and the directory that they read. A power cut or a kill at any instant leaves each part all old or
 * all new, and the old one until every pod was ready; the same command, or a resume, ends the rollout.
 */
import { DurableCalls } from '../../../../src/durable/index.js'
import { silent } from '../../../../src/log.js'
import { parseManifest } from '../../../../src/static-pods/pod/manifest.js'
import { resume, rollout, type RolloutMeans, type RolloutOutcome } from '../../../../src/static-pods/rollout/rollout.js'
import type { RolloutRequest } from '../../../../src/static-pods/rollout/rollout-plan.js'
import { isKind } from '../../judge/names.js'
import { find, holds, textOf } from '../content.js'
import type { Effort } from '../explore.js'
import type { Explorer, Position } from '../explorer.js'
import { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import { makeDirectory, makeEntry } from '../scenario.js'
import { eachCut, run } from './explore.js'

const manifests = '/node/etc/manifests'
/** Not above the manifests: their publication syncs all of its ancestors. */
const pki = '/node/lib/pki'
const pods = ['etcd', 'api'] as const

export interface RolloutStory {
  readonly name: string
  /** The pod that does not become ready. */
  readonly fails?: (typeof pods)[number]
  /** Pods that are there before; the others are new. */
  readonly before: readonly string[]
}

export const rolloutStories: readonly RolloutStory[] = [
  { name: 'static pod: rollout, ready', before: pods },
  { name: 'static pod: rollout, taken back', before: pods, fails: 'api' },
  { name: 'static pod: rollout of new pods, taken back', before: ['etcd'], fails: 'api' },
]

function podText(name: string, version: number): string {
  const spec = { containers: [{ name, image: `${name}:${version}` }] }
  return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec })
}

async function request(): Promise<RolloutRequest> {
  const read = pods.map(async (pod) => {
    const place = `${pod}.yaml`
    return { place, manifest: await parseManifest(Buffer.from(podText(pod, 2)), place) }
  })
  return {
    manifestDirectory: manifests,
    manifests: await Promise.all(read),
    tree: { target: pki, files: { 'ca.crt': { content: 'new', mode: 0o644 } } },
    manifestLock: '/node/installer.lock',
    timeout: 0,
    fallback: true,
    allowOlder: false,
    requireProven: true,
    readiness: { urls: [], authority: null, commands: [], kubelet: null, mirrorPod: null },
  }
}

function prepared({ before }: RolloutStory): ModelDisk {
  const disk = new ModelDisk()
  for (const path of ['/node', '/node/etc', manifests, '/node/lib', pki]) makeDirectory(disk, path, 0o755)
  makeEntry(disk, `${pki}/ca.crt`, 'file', 0o644, 'old')
  makeEntry(disk, `${pki}/ca.key`, 'file', 0o600, 'old')
  for (const pod of before) makeEntry(disk, `${manifests}/${pod}.yaml`, 'file', 0o644, podText(pod, 1))
  disk.syncAll()
  return disk
}

interface View {
  readonly manifests: readonly (string | undefined)[]
  readonly tree: string
  readonly left: readonly string[]
}

function look(disk: ModelDisk): View {
  const tree = find(disk, pki)
  const names = [
    ...(find(disk, manifests)?.now.entries.keys() ?? []),
    ...(find(disk, '/node/lib')?.now.entries.keys() ?? []),
  ]
  return {
    manifests: pods.map((pod) => {
      const inode = find(disk, `${manifests}/${pod}.yaml`)
      if (inode === undefined) return 'none'
      if (textOf(disk, inode) === `f 644 0:0 <${podText(pod, 1)}>`) return 'old'
      return isNew(inode.now.data, pod) ? 'new' : inode.now.data
    }),
    tree: tree ? treeName(textOf(disk, tree)) : 'none',
    left: names.filter((name) => isKind('staging', 'foreign')(name) || name.startsWith('.holdfast-rollout-')),
  }
}

/** The new manifest, whole, with the annotation that a rollout adds to its text. */
function isNew(text: string, pod: string): boolean {
  const annotation = /"annotations": ?\{"holdfast\.dev\/rollout": ?"[0-9a-f]{16}"\}, ?/
  if (!annotation.test(text)) return false
  return text.replace(annotation, '') === podText(pod, 2)
}

const oldTree = 'd 755 0:0 {ca.crt=f 644 0:0 <old>,ca.key=f 600 0:0 <old>}'
const newTree = 'd 755 0:0 {ca.crt=f 644 0:0 <new>}'

function treeName(text: string): string {
  return text === oldTree ? 'old' : text === newTree ? 'new' : text
}

function means(durable: DurableCalls, { fails }: RolloutStory): RolloutMeans {
  const probe = {
    name: 'the pod',
    identifiesPod: true,
    ask: ({ name }: { name: string }) =>
      Promise.resolve(
        name === fails ? ({ state: 'not-ready', message: 'no' } as const) : ({ state: 'ready' } as const),
      ),
  } as const
  const { signal } = new AbortController()
  const openProbes = () => Promise.resolve([probe])
  return { durable, log: silent, signal, openProbes, timing: { interval: 0, handover: 0 } }
}

type Command = (durable: DurableCalls) => Promise<RolloutOutcome>

/** The node before a rollout of this story, and the rollout. */
export async function beginning(story: RolloutStory): Promise<{ disk: ModelDisk; command: Command }> {
  const asked = await request()
  return { disk: prepared(story), command: (durable) => rollout(asked, means(durable, story)) }
}

export async function exploreRollouts(explorer: Explorer, story: RolloutStory, effort: Effort): Promise<void> {
  const asked = await request()
  const again: Command = (durable) => rollout(asked, means(durable, story))
  const resumed: Command = (durable) => resume(manifests, means(durable, story))
  const unwell: Command = (durable) => resume(manifests, means(durable, { ...story, fails: 'api' }))
  const was = (pod: string): string => (story.before.includes(pod) ? 'old' : 'none')
  const end = story.fails ? [...pods.map(was), 'old'].join() : 'new,new,new'
  const start = [...pods.map(was), 'old'].join()

  const shown = ({ manifests, tree }: View): string => [...manifests, tree].join()
  const whole = ({ disk, trail }: Position): void => {
    const view = look(disk)
    const parts = [...pods.map((pod, index) => [view.manifests[index], was(pod)] as const), [view.tree, 'old'] as const]
    if (parts.some(([found, before]) => found !== before && found !== 'new'))
      explorer.report(`torn: ${shown(view)}`, trail)
    const isNew = view.manifests.every((found) => found === 'new') && view.tree === 'new'
    if (!holds(disk, oldTree) && (!isNew || story.fails)) explorer.report(`the old tree is lost: ${shown(view)}`, trail)
    if (!story.fails && view.tree !== 'new' && view.manifests.includes('new'))
      explorer.report(`a manifest before the tree that it reads: ${shown(view)}`, trail)
  }
  const unready: RolloutStory = { ...story, fails: 'api' }
  const done = async ({ disk, trail }: Position, ends: readonly string[], isCut = false): Promise<void> => {
    const view = look(disk)
    if (!ends.includes(shown(view))) explorer.report(`after success: ${shown(view)}, not ${ends.join(' or ')}`, trail)
    const left = view.left.filter((name) => !isCut || name.startsWith('.holdfast-rollout-'))
    if (left.length > 0) explorer.report(`after success: ${left.join()} is left`, trail)
    // It has ended: no resume goes back behind it.
    const outcome = await resume(manifests, means(new DurableCalls(new ModelProcess(disk.fork())), unready))
    // A power cut may take the very state of a rollout that had changed nothing.
    const isForgotten = outcome.outcome === 'never-begun' && trail.includes('power cut') && shown(view) === start
    if (outcome.outcome !== 'nothing-to-resume' && !isForgotten)
      explorer.report(`after success: a resume is ${outcome.outcome}`, trail)
  }
  const succeeds = async (position: Position, command: Command, ends: readonly string[]): Promise<void> => {
    const disk = position.disk.fork()
    const { failure } = await run(explorer, disk, command)
    const ended = { ...position, disk, trail: [...position.trail, `then: ${failure?.stack ?? 'done'}`] }
    if (failure !== undefined) explorer.report('does not succeed', ended.trail)
    await done(ended, ends)
    await eachCut(explorer, ended, effort.fewer, (survivor) => done(survivor, ends, true))
  }

  const disk = prepared(story)
  const position: Position = { disk: disk.fork(), ledgers: [], trail: [story.name] }
  const first = await run(explorer, position.disk, again, { record: true })
  if (first.failure !== undefined) explorer.report('does not succeed', [story.name, first.failure.stack ?? ''])
  await done(position, [end])
  await eachCut(explorer, position, effort.states, (survivor) => done(survivor, [end], true))
  const known = new Set<string>()
  for (const { what, disk } of first.instants) {
    const stopped: Position = { disk, ledgers: [], trail: [story.name, `stopped after: ${what}`] }
    whole(stopped)
    await succeeds(stopped, again, [end])
    // Once the rollout removes the old tree, no way leads back, with any state of the pods.
    if (!holds(disk, oldTree)) await succeeds(stopped, unwell, [end, start])
    let recovered = 0
    await eachCut(explorer, stopped, effort.states, async (survivor) => {
      whole(survivor)
      const key = explorer.keyOf(survivor)
      // Each is judged; to go on from each would take minutes.
      if (known.has(key) || ++recovered > effort.second) return
      known.add(key)
      await succeeds(survivor, again, [end])
      // A rollout that had changed nothing yet may give up.
      await succeeds(survivor, resumed, [end, start])
    })
  }
}
