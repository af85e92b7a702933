/*
 * Changes static pods, one after the other, with the directory that they read: publishes, watches, and takes all of it back where one
 * does not become ready. The state file tells of each step before it happens; so the next run finishes a rollout that was killed, or
 * whose power was cut, or takes it back.
 */
import { dirname, join } from 'node:path'
import type { DurableCalls } from '../../durable/index.js'
import type { DirectoryChange } from '../../durable/publish/index.js'
import {
  checkManifestDirectory,
  checkRolloutPlaces,
  identifyRequest,
  planRollout,
  type RolloutRequest,
} from './rollout-plan.js'
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
import { type KeptTree, refuseKeptTrees, removeAllKept, stageRolledTree } from './rollout-tree.js'
import { isPublicationError } from '../../errors.js'
import { StaticPodError, withState } from '../failure.js'
import { holding } from '../node-files.js'
import { unprovenPlaces, warnOfUnproven } from '../unproven-places.js'
import { warnOfDoubts } from '../pod/manifest.js'
import { rolloutStatus, rolloutLine, unfinishedRollouts } from './rollout-status.js'

export type { RolloutMeans, RolloutOutcome }

/**
 * First finishes an interrupted rollout, or takes it back; if that was the same one, that is all.
 * @throws InvalidInput, StaticPodError, DurableWriteError (Busy while another rollout is under way); the signal's reason: the next run,
 *   or `resume`, goes on
 */
export async function rollout(request: RolloutRequest, means: RolloutMeans): Promise<RolloutOutcome> {
  const { durable, log } = means
  const { manifestDirectory } = request
  // A faulty request fails before anything exists, even a lock.
  await checkRolloutPlaces(request, durable)
  const before = await readState(manifestDirectory, durable)
  const asked = before === undefined || before.phase === 'ended' ? await planRollout(request, durable, log) : undefined
  for (const { place, manifest } of request.manifests) warnOfDoubts(manifest, place, log)
  // The kept directories of an earlier rollout may go now, under the lock.
  if (asked?.tree && before?.kept === undefined) await refuseKeptTrees(asked.tree.target, durable, [])
  if (asked) await tryBefore(request, asked, means)
  const unproven = await lookForUnproven(manifestDirectory, request.tree?.target, means)
  return underRolloutLock(manifestDirectory, durable, async () => {
    let stays = await unfinishedIn(manifestDirectory, means)
    const { found } = stays
    if (found) {
      log.warn({ path: manifestDirectory, phase: found.phase }, 'a rollout was interrupted: holdfast ends it first')
      const isSame = found.request === (await identifyRequest(request, durable))
      const { readiness, timeout, fallback } = request
      // Another probe than before; the tree may have lost what the known ones need, and then goes back.
      const isOther = isSame && JSON.stringify(readiness) !== JSON.stringify(found.readiness)
      if (isOther) await tryBefore(request, found, means)
      const state = isSame ? { ...found, readiness, timeout, fallback } : found
      const interrupted = new Rollout(state, manifestDirectory, means)
      const ended = await interrupted.run()
      if (isSame && ended) return { ...ended, ...unproven }
      if (ended?.outcome === 'not-ready') {
        interrupted.refuseAnother(ended.message ?? '')
        await interrupted.end(ended.outcome)
      }
      stays = await unfinishedIn(manifestDirectory, means)
    }
    const { kept, outcome: rest } = stays
    const plan = await planRollout(request, durable, log)
    if (plan === undefined) return { outcome: 'unchanged', manifests: [], ...rest, ...unproven }
    if (plan.tree) await refuseKeptTrees(plan.tree.target, durable, kept)
    if (asked === undefined) await tryBefore(request, plan, means)
    const begun: RolloutState = { ...plan, ...(kept.length > 0 && { kept: kept.map(({ tree }) => tree) }) }
    await writeState(manifestDirectory, begun, durable, log)
    const tree =
      plan.tree && request.tree ? await stageRolledTree(request.tree, plan.tree, durable, means.signal) : null
    const state: RolloutState = { ...begun, phase: 'going', tree }
    await writeState(manifestDirectory, state, durable, log)
    const outcome = await new Rollout(state, manifestDirectory, means).run()
    return { outcome: 'unchanged', manifests: [], ...outcome, ...unproven }
  })
}

/** @throws StaticPodError, InvalidInput where a probe cannot be run: nothing was changed */
async function tryBefore(request: RolloutRequest, plan: RolloutState, means: RolloutMeans): Promise<void> {
  const probes = await means.openProbes(request.readiness, filesBefore(request.tree, means.durable), true)
  return tryProbes(probes, plan, means.signal, means.log)
}

/** A rollout as it would be: each manifest, and what changes in the directory. */
export interface PlannedRollout {
  readonly manifests: readonly { readonly path: string; readonly outcome: 'created' | 'replaced' }[]
  readonly tree?: { readonly path: string; readonly changes: readonly DirectoryChange[] }
}

/** What `rollout` would do. Writes nothing, and asks every probe. @throws as `rollout` does where it refuses, and where another one is not over */
export async function rehearse(request: RolloutRequest, means: RolloutMeans): Promise<PlannedRollout> {
  const { durable, log } = means
  const { manifestDirectory } = request
  await checkRolloutPlaces(request, durable)
  const [unfinished] = await unfinishedRollouts([manifestDirectory], durable)
  if (unfinished) throw new StaticPodError(rolloutLine(unfinished))
  const plan = await planRollout(request, durable, log)
  if (plan === undefined) return { manifests: [] }
  const before = await readState(manifestDirectory, durable)
  if (plan.tree && before?.kept === undefined) await refuseKeptTrees(plan.tree.target, durable, [])
  await tryBefore(request, plan, means)
  const manifests = plan.manifests.map(({ name, previous }) => {
    return { path: join(manifestDirectory, name), outcome: previous === null ? 'created' : 'replaced' } as const
  })
  if (!plan.tree || !request.tree) return { manifests }
  const { changes } = await durable.difference({ ...request.tree, publisher: 'rollout' })
  return { manifests, tree: { path: plan.tree.target, changes } }
}

/** Finishes an interrupted rollout, or takes it back: for a unit at boot. `takeBack`: only that, without a look at the pods. */
export async function resume(
  manifestDirectory: string,
  means: RolloutMeans,
  { takeBack = false } = {},
): Promise<RolloutOutcome> {
  await checkManifestDirectory(manifestDirectory, means.durable)
  return underRolloutLock(manifestDirectory, means.durable, async () => {
    const { found, isKnown, outcome } = await unfinishedIn(manifestDirectory, means)
    if (found === undefined) {
      const { message } = await rolloutStatus(manifestDirectory, means.durable)
      return { outcome: isKnown ? 'nothing-to-resume' : 'never-begun', manifests: [], message, ...outcome }
    }
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
  { durable, log }: RolloutMeans,
): Promise<Pick<RolloutOutcome, 'unproven'>> {
  const trees = tree === undefined ? [] : [{ path: tree, directory: dirname(tree) }]
  return warnOfUnproven(await unprovenPlaces([{ path: manifestDirectory }, ...trees], { durable }), log)
}

interface Unfinished {
  /** A rollout was begun there before. */
  readonly isKnown: boolean
  /** A rollout that was interrupted. */
  readonly found?: RolloutState
  /** Directories that earlier rollouts have taken out, and that cannot go yet. */
  readonly kept: readonly KeptTree[]
  readonly outcome: Pick<RolloutOutcome, 'kept'>
}

async function unfinishedIn(manifestDirectory: string, { durable, log }: RolloutMeans): Promise<Unfinished> {
  const found = await readState(manifestDirectory, durable)
  if (found === undefined) return { isKnown: false, kept: [], outcome: {} }
  if (found.phase !== 'ended') return { isKnown: true, found, kept: [], outcome: {} }
  const kept = await removeAllKept(found.kept ?? [], durable, log)
  // Written again: a predecessor may have been killed before its sync.
  return { isKnown: true, kept, outcome: await closeState(manifestDirectory, found, kept, { durable, log }) }
}

async function underRolloutLock<T>(
  manifestDirectory: string,
  durable: DurableCalls,
  work: () => Promise<T>,
): Promise<T> {
  const lock = durable.lock(rolloutLockPath(manifestDirectory), 0, undefined).catch(async (error: unknown) => {
    if (!isPublicationError(error) || error.reason !== 'Busy') throw error
    throw withState(error, [rolloutLine(await rolloutStatus(manifestDirectory, durable))])
  })
  return holding(lock, async () => {
    await tidyState(manifestDirectory, durable)
    return work()
  })
}
