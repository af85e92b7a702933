/* What a rollout stands at, for those who come later: `rollout --status`, `status`, `check`, and commands that would write over it. */
import { basename, dirname } from 'node:path'
import { flockHolders, type DurableCalls } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import { StaticPodError } from '../failure.js'
import { usualManifestDirectory } from '../host-path-users.js'
import { noLimit } from '../ready/readiness.js'
import { isSamePodName, parseManifest, type Manifest } from '../pod/manifest.js'
import { besidePath, bytesOf, readState, rolloutLockPath, type RolloutState } from './rollout-state.js'

/** Where kubeadm, OpenShift, RKE2 and k3s have their manifests. */
export const usualManifestDirectories = [
  usualManifestDirectory,
  '/var/lib/rancher/rke2/agent/pod-manifests',
  '/var/lib/rancher/k3s/agent/pod-manifests',
]

export interface RolloutStatus {
  readonly directory: string
  /** `none`: none was ever begun there. `interrupted`: no process is seen that works on it. */
  readonly state: 'none' | 'under-way' | 'interrupted' | 'ended' | 'damaged'
  readonly message: string
  /** Where people have to do something. */
  readonly advice?: string
  /** File names, in the order in which the pods change. */
  readonly manifests?: readonly string[]
  /** How many of them may be new. */
  readonly reached?: number
  /** The directory that is exchanged with them. */
  readonly tree?: string
  readonly process?: number
  /** Seconds to the timeout of the newest one. */
  readonly left?: number
}

export async function rolloutStatus(directory: string, durable: DurableCalls): Promise<RolloutStatus> {
  const found = await readState(directory, durable).catch((error: unknown) => messageOf(error))
  if (typeof found === 'string')
    return { directory, state: 'damaged', message: found, advice: 'docs/rollout.md, "At 3 a.m.", says how' }
  if (found === undefined) return { directory, state: 'none', message: `no rollout was ever begun in ${directory}` }
  if (found.phase === 'ended') {
    const { outcome, message } = found
    const why = message === undefined ? '' : `: ${message}`
    return { directory, state: 'ended', message: `the last rollout in ${directory} ended: ${outcome}${why}` }
  }
  const worker = await workerIn(directory, durable)
  const state = worker === undefined ? 'interrupted' : 'under-way'
  const left = await timeLeft(found, durable)
  const manifests = found.manifests.map(({ name }) => name)
  const { reached, tree } = found
  const message = `a rollout of ${manifests.join(', ')} in ${directory} ${worker === undefined ? 'was interrupted, and ' : ''}${standing(found, left)}`
  const known = { directory, state, message, advice: remedy(directory, worker), manifests, reached } as const
  const where = { ...(tree && { tree: tree.target }), ...(worker !== undefined && { process: worker }) }
  return { ...known, ...where, ...(left !== undefined && { left }) }
}

function standing({ phase, manifests, reached, message }: RolloutState, left: number | undefined): string {
  if (phase === 'staging') return 'has changed nothing yet'
  if (phase === 'back') return `goes back (${message})`
  if (phase === 'proven') return 'is proven ready, and tidies up'
  const time = left === undefined ? '' : `, with ${left} s left`
  return `is at ${manifests[Math.max(0, reached - 1)]?.name ?? ''}, ${Math.max(1, reached)} of ${manifests.length}${time}`
}

function remedy(directory: string, worker: number | undefined): string {
  const resume = `holdfast rollout --resume --pod-manifest-dir ${directory}`
  const ends = `${resume} finishes it or takes it back, and with --take-back only takes it back`
  if (worker === undefined) return `no process is seen that works on it: ${ends}`
  return `process ${worker} works on it; end that first (kill -INT ${worker}), then ${ends}`
}

/** Seconds; undefined: there is no limit, or no watch in this boot. */
async function timeLeft({ since, timeout }: RolloutState, { fs }: DurableCalls): Promise<number | undefined> {
  if (since === null || timeout === noLimit || since.boot !== (await fs.bootId())) return undefined
  return Math.max(0, Math.round(timeout / 1000 - (fs.uptime() / 1000 - since.uptime)))
}

/** Another process that holds the lock; undefined: none that this one sees. */
async function workerIn(directory: string, durable: DurableCalls): Promise<number | undefined> {
  const path = rolloutLockPath(directory)
  const holders = await durable.inDirectory(dirname(path), async (parent) => {
    const lock = await durable.fs.look(parent, basename(path))
    return lock && flockHolders((await durable.fs.mount(parent)).device, lock.inode)
  })
  return holders?.find((holder) => holder !== process.pid)
}

/** What a rollout stands at, and what to do, in one sentence. */
export function rolloutLine({ message, advice }: RolloutStatus): string {
  return advice === undefined ? message : `${message}; ${advice}`
}

/** Those of these directories that people have to know of. */
export async function unfinishedRollouts(
  directories: readonly string[],
  durable: DurableCalls,
): Promise<RolloutStatus[]> {
  const all = await Promise.all([...new Set(directories)].map((directory) => rolloutStatus(directory, durable)))
  return all.filter(({ state }) => state !== 'none' && state !== 'ended')
}

/**
 * Keeps other commands from what a rollout may still take back, the directory, its manifests, another file with one of these pods: it would
 * put the old directory under the new manifest. With a damaged state, people are told to make the manifests what they are to be.
 * @throws StaticPodError
 */
export async function refuseUnfinished(
  paths: readonly string[],
  pods: readonly Manifest[],
  durable: DurableCalls,
  state: string,
): Promise<void> {
  for (const path of paths) {
    const found = await rolloutStatus(dirname(path), durable)
    const isOf =
      found.manifests && (found.manifests.includes(basename(path)) || (await changesOneOf(pods, path, durable)))
    if (isOf) throw new StaticPodError(`${rolloutLine(found)}; ${state}`)
    const beside = besidePath(path)
    const end = 'holdfast rollout --resume, with the --pod-manifest-dir that it had, ends that, or removes it'
    if (await durable.fs.lookPath(beside)) throw new StaticPodError(`${beside} is of a rollout: ${end}; ${state}`)
  }
}

/** kubelet takes two files for one pod by their names, or by their uids. */
async function changesOneOf(pods: readonly Manifest[], path: string, durable: DurableCalls): Promise<boolean> {
  const found = await readState(dirname(path), durable)
  const texts = found && 'manifests' in found ? found.manifests.flatMap(({ previous, next }) => [previous, next]) : []
  const rolled = await Promise.all(texts.map((text) => parseManifest(bytesOf(text ?? ''), '').catch(() => undefined)))
  return pods.some((pod) => rolled.some((one) => one && (isSamePodName(one, pod) || (pod.uid && one.uid === pod.uid))))
}
