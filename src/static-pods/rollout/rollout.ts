/*
 * Changes static pods, one after the other, with the directory that they read: publishes, watches, and takes all of it back where one
 * does not become ready. The state file tells of each step before it happens; so the next run finishes a rollout that was killed, or
 * whose power was cut, or takes it back.
 */
import { dirname } from 'node:path'
import type { Disk } from '../../durable/index.js'
import { checkManifestDirectory, checkPlaces, identify, planRollout, type RolloutRequest } from './rollout-plan.js'
import {
  readState,
  rolloutLockPath,
  tidyState,
  writeState,
  type RolloutOutcome,
  type RolloutState,
} from './rollout-state.js'
import { filesBefore, tryProbes } from './rollout-probes.js'
import { closeState, Rollout, type RolloutMeans } from './rollout-steps.js'
import { type KeptTree, refuseKept, removeAllKept, stageRolledTree } from './rollout-tree.js'
import { holding } from '../node-files.js'
import { unprovenPlaces, warnOfUnproven } from '../unproven-places.js'

export type { RolloutMeans, RolloutOutcome }

/**
 * First finishes an interrupted rollout, or takes it back; if that was the same one, that is all.
 * @throws InvalidInput, StaticPodError, DurableWriteError (Busy while another rollout is under way); the signal's reason: the next run,
 *   or `resume`, goes on
 */
export async function rollout(request: RolloutRequest, means: RolloutMeans): Promise<RolloutOutcome> {
  const { disk, log } = means
  const { manifestDirectory } = request
  // A faulty request fails before anything exists, even a lock.
  await checkPlaces(request, disk)
  const before = await readState(manifestDirectory, disk)
  const asked = before === undefined || before.phase === 'ended' ? await planRollout(request, disk, log) : undefined
  // The kept directories of an earlier rollout may go now, under the lock.
  if (asked?.tree && before?.kept === undefined) await refuseKept(asked.tree.target, disk, [])
  const tried = asked && (await tryBefore(request, asked, means))
  const unproven = await lookForUnproven(manifestDirectory, request.tree?.target, means)
  return underLock(manifestDirectory, disk, async () => {
    let stays = await unfinished(manifestDirectory, means)
    const { found } = stays
    if (found) {
      log.warn({ path: manifestDirectory, phase: found.phase }, 'a rollout was interrupted: holdfast ends it first')
      const isSame = found.request === (await identify(request, disk))
      const { readiness, timeout, fallback } = request
      const state = isSame ? { ...found, readiness, timeout, fallback } : found
      const interrupted = new Rollout(state, manifestDirectory, means)
      const ended = await interrupted.run()
      if (isSame && ended) return { ...ended, ...unproven }
      if (ended?.outcome === 'not-ready' || ended?.outcome === 'unknown') {
        interrupted.refuseAnother(ended.message ?? '')
        await interrupted.end(ended.outcome)
      }
      stays = await unfinished(manifestDirectory, means)
    }
    const { kept, outcome: rest } = stays
    const plan = await planRollout(request, disk, log)
    if (plan === undefined) return { outcome: 'unchanged', manifests: [], ...rest, ...unproven }
    if (plan.tree) await refuseKept(plan.tree.target, disk, kept)
    const couldAsk = tried ?? (await tryBefore(request, plan, means))
    const begun: RolloutState = { ...plan, couldAsk, ...(kept.length > 0 && { kept: kept.map(({ tree }) => tree) }) }
    await writeState(manifestDirectory, begun, disk, log)
    const tree = plan.tree && request.tree ? await stageRolledTree(request.tree, plan.tree, disk, means.signal) : null
    const state: RolloutState = { ...begun, phase: 'going', tree }
    await writeState(manifestDirectory, state, disk, log)
    const outcome = await new Rollout(state, manifestDirectory, means).run()
    return { outcome: 'unchanged', manifests: [], ...outcome, ...unproven }
  })
}

/** Which probes can ask now. @throws StaticPodError, InvalidInput where one is refused, or lacks a file: nothing was changed */
async function tryBefore(request: RolloutRequest, plan: RolloutState, means: RolloutMeans): Promise<string[]> {
  const probes = await means.openProbes(request.readiness, filesBefore(request.tree, means.disk), true)
  return tryProbes(probes, plan, means.signal, means.log)
}

/** Finishes an interrupted rollout, or takes it back: for a unit at boot. `takeBack`: only that, without a look at the pods. */
export async function resume(
  manifestDirectory: string,
  means: RolloutMeans,
  { takeBack = false } = {},
): Promise<RolloutOutcome> {
  await checkManifestDirectory(manifestDirectory, means.disk)
  return underLock(manifestDirectory, means.disk, async () => {
    const { found, outcome } = await unfinished(manifestDirectory, means)
    if (found === undefined) return { outcome: 'nothing-to-resume', manifests: [], ...outcome }
    const unproven = await lookForUnproven(manifestDirectory, found.tree?.target, means)
    const ended = await new Rollout(found, manifestDirectory, means).run(takeBack)
    const abandoned = {
      outcome: 'taken-back' as const,
      manifests: [],
      message: 'it was interrupted before it changed anything',
    }
    return { ...(ended ?? abandoned), ...unproven }
  })
}

/** Warns of the places of a rollout where durability is not proven. */
async function lookForUnproven(
  manifestDirectory: string,
  tree: string | undefined,
  { disk, log }: RolloutMeans,
): Promise<Pick<RolloutOutcome, 'unproven'>> {
  const trees = tree === undefined ? [] : [{ path: tree, directory: dirname(tree) }]
  return warnOfUnproven(await unprovenPlaces([{ path: manifestDirectory }, ...trees], { disk }), log)
}

interface Unfinished {
  /** A rollout that was interrupted. */
  readonly found?: RolloutState
  /** Directories that earlier rollouts have taken out, and that cannot go yet. */
  readonly kept: readonly KeptTree[]
  readonly outcome: Pick<RolloutOutcome, 'kept'>
}

async function unfinished(manifestDirectory: string, { disk, log }: RolloutMeans): Promise<Unfinished> {
  const found = await readState(manifestDirectory, disk)
  if (found === undefined) return { kept: [], outcome: {} }
  if (found.phase !== 'ended') return { found, kept: [], outcome: {} }
  const kept = await removeAllKept(found.kept ?? [], disk, log)
  // Written again: a predecessor may have been killed before its sync.
  return { kept, outcome: await closeState(manifestDirectory, found, kept, { disk, log }) }
}

async function underLock<T>(manifestDirectory: string, disk: Disk, work: () => Promise<T>): Promise<T> {
  return holding(disk.lock(rolloutLockPath(manifestDirectory), 0, undefined), async () => {
    await tidyState(manifestDirectory, disk)
    return work()
  })
}
