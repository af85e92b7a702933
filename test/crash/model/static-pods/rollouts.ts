/*
 * Rollouts on the model disk: two pods and the directory that they read. A power cut or a kill at any instant leaves each part all old or
 * all new, and the old one until every pod was ready; the same command, or a resume, ends the rollout.
 */
import { DurableCalls } from '../../../../src/durable/index.js'
import { silent } from '../../../../src/log.js'
import { parseManifest } from '../../../../src/static-pods/pod/manifest.js'
import { resume, rollout, type RolloutMeans } from '../../../../src/static-pods/rollout/rollout.js'
import type { RolloutRequest } from '../../../../src/static-pods/rollout/rollout-plan.js'
import { isKind } from '../../judge/names.js'
import { find, holds, textOf } from '../content.js'
import type { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import { makeDirectory, makeEntry } from '../scenario.js'
import type { Command, Judge, Story } from './explore.js'

const manifests = '/node/etc/manifests'
/** Not above the manifests: their publication syncs all of its ancestors. */
const pki = '/node/lib/pki'
const pods = ['etcd', 'api'] as const

interface Rollout {
  readonly name: string
  /** The pod that does not become ready. */
  readonly fails?: (typeof pods)[number]
  /** Pods that are there before; the others are new. */
  readonly before: readonly string[]
}

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

function prepared(disk: ModelDisk, { before }: Rollout): void {
  for (const path of ['/node', '/node/etc', manifests, '/node/lib', pki]) makeDirectory(disk, path, 0o755)
  makeEntry(disk, `${pki}/ca.crt`, 'file', 0o644, 'old')
  makeEntry(disk, `${pki}/ca.key`, 'file', 0o600, 'old')
  for (const pod of before) makeEntry(disk, `${manifests}/${pod}.yaml`, 'file', 0o644, podText(pod, 1))
  disk.syncAll()
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

function means(durable: DurableCalls, { fails }: Rollout): RolloutMeans {
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

function judgeOf(rolled: Rollout, again: Command): Judge {
  const resumed: Command = (durable) => resume(manifests, means(durable, rolled))
  const unwell = (durable: DurableCalls) => resume(manifests, means(durable, { ...rolled, fails: 'api' }))
  const was = (pod: string): string => (rolled.before.includes(pod) ? 'old' : 'none')
  const start = [...pods.map(was), 'old'].join()
  const end = rolled.fails ? start : 'new,new,new'

  const shown = ({ manifests, tree }: View): string => [...manifests, tree].join()
  const doneAs =
    (...ends: readonly string[]): Judge['done'] =>
    async ({ disk, trail }, wrong, isCut) => {
      const view = look(disk)
      if (!ends.includes(shown(view))) wrong(`after success: ${shown(view)}, not ${ends.join(' or ')}`)
      const left = view.left.filter((name) => !isCut || name.startsWith('.holdfast-rollout-'))
      if (left.length > 0) wrong(`after success: ${left.join()} is left`)
      // It has ended: no resume goes back behind it.
      const { outcome } = await unwell(new DurableCalls(new ModelProcess(disk.fork())))
      // A power cut may take the very state of a rollout that had changed nothing.
      const isForgotten = outcome === 'never-begun' && trail.includes('power cut') && shown(view) === start
      if (outcome !== 'nothing-to-resume' && !isForgotten) wrong(`after success: a resume is ${outcome}`)
    }
  return {
    whole: (disk, wrong) => {
      const view = look(disk)
      const parts = [...pods.map((pod, index) => [view.manifests[index], was(pod)]), [view.tree, 'old']]
      if (parts.some(([found, before]) => found !== before && found !== 'new')) wrong(`torn: ${shown(view)}`)
      const isNew = view.manifests.every((found) => found === 'new') && view.tree === 'new'
      if (!holds(disk, oldTree) && (!isNew || rolled.fails)) wrong(`the old tree is lost: ${shown(view)}`)
      if (!rolled.fails && view.tree !== 'new' && view.manifests.includes('new'))
        wrong(`a manifest before the tree that it reads: ${shown(view)}`)
    },
    done: doneAs(end),
    next: (disk, isCut) => {
      const next: [Command, Judge['done']][] = [[again, doneAs(end)]]
      // A rollout that had changed nothing yet may give up.
      if (isCut) next.push([resumed, doneAs(end, start)])
      // Once the rollout removes the old tree, no way leads back, with any state of the pods.
      else if (!holds(disk, oldTree)) next.push([unwell, doneAs(end, start)])
      return next
    },
  }
}

export const rollouts = [
  { name: 'static pod: rollout, ready', before: pods },
  { name: 'static pod: rollout, taken back', before: pods, fails: 'api' as const },
  { name: 'static pod: rollout of new pods, taken back', before: ['etcd'], fails: 'api' as const },
].map((one): Story => {
  const command: Command = async (durable) => rollout(await request(), means(durable, one))
  const prepare = (disk: ModelDisk): void => prepared(disk, one)
  return { name: one.name, prepare, command, judge: () => judgeOf(one, command), share: 1, recovered: 1 }
})
