/* What a rollout stands at, for those who come later: `rollout --status`, `status`, `check`, and commands that would write over it. */
import { basename, dirname } from 'node:path'
import { flockHolders, type Disk } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import { StaticPodError } from '../failure.js'
import { usualManifestDirectory } from '../host-path-users.js'
import { noLimit } from '../ready/readiness-settings.js'
import { readState, rolloutLockPath, type RolloutState } from './rollout-state.js'

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

export async function rolloutStatus(directory: string, disk: Disk): Promise<RolloutStatus> {
  let found
  try {
    found = await readState(directory, disk)
  } catch (error) {
    return { directory, state: 'damaged', message: messageOf(error), advice: 'docs/rollout.md, "At 3 a.m.", says how' }
  }
  if (found === undefined) return { directory, state: 'none', message: `no rollout was ever begun in ${directory}` }
  if (found.phase === 'ended') {
    const { outcome, message } = found
    const why = message === undefined ? '' : `: ${message}`
    return { directory, state: 'ended', message: `the last rollout in ${directory} ended: ${outcome}${why}` }
  }
  const worker = await workerIn(directory, disk)
  const state = worker === undefined ? 'interrupted' : 'under-way'
  const left = await timeLeft(found, disk)
  const manifests = found.manifests.map(({ name }) => name)
  const { reached, tree } = found
  const message = `a rollout of ${manifests.join(', ')} in ${directory} ${worker === undefined ? 'was interrupted, and ' : ''}${standing(found, left)}`
  const known = { ...(tree && { tree: tree.target }), ...(worker !== undefined && { process: worker }) }
  return {
    directory,
    state,
    message,
    advice: remedy(directory, worker),
    manifests,
    reached,
    ...known,
    ...(left !== undefined && { left }),
  }
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
async function timeLeft({ since, timeout }: RolloutState, { fs }: Disk): Promise<number | undefined> {
  if (since === null || timeout === noLimit || since.boot !== (await fs.bootId())) return undefined
  return Math.max(0, Math.round(timeout / 1000 - (fs.uptime() / 1000 - since.uptime)))
}

/** Another process that holds the lock; undefined: none that this one sees. */
async function workerIn(directory: string, disk: Disk): Promise<number | undefined> {
  const path = rolloutLockPath(directory)
  const holders = await disk.inDirectory(dirname(path), async (parent) => {
    const lock = await disk.fs.look(parent, basename(path))
    return lock && flockHolders((await disk.fs.mount(parent)).device, lock.inode)
  })
  return holders?.find((holder) => holder !== process.pid)
}

/** What a rollout stands at, and what to do, in one sentence. */
export function rolloutLine({ message, advice }: RolloutStatus): string {
  return advice === undefined ? message : `${message}; ${advice}`
}

/** Those of these directories that people have to know of. */
export async function unfinishedRollouts(directories: readonly string[], disk: Disk): Promise<RolloutStatus[]> {
  const all = await Promise.all([...new Set(directories)].map((directory) => rolloutStatus(directory, disk)))
  return all.filter(({ state }) => state !== 'none' && state !== 'ended')
}

/**
 * Keeps other commands from a manifest that a rollout may still take back: it takes back only what it knows, and would put the old
 * directory under the new manifest. A damaged state says nothing of manifests, and people are told to make them what they are to be.
 * @throws StaticPodError
 */
export async function refuseUnfinished(paths: readonly string[], disk: Disk, state: string): Promise<void> {
  for (const path of paths) {
    const found = await rolloutStatus(dirname(path), disk)
    if (found.manifests?.includes(basename(path))) throw new StaticPodError(`${rolloutLine(found)}; ${state}`)
  }
}
