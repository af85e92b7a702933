import { objectName } from '../message-text.js'
import { expand, referencesOf, selectionsOf } from '../config/references.js'
import { dateFindings } from '../directories/validate.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { Source } from '../objects/types.js'
import type { Examining } from './content-check.js'
import { owed } from './leaving/departures.js'
import { compareWithRecord, detectDrift, repairedDrift } from './detect-drift.js'
import { withoutPaths, type ConditionState, type PublishedObject } from './conditions.js'
import { isAhead, isPastOver, type DirectoryFacts, type DirectoryState } from './directory-state.js'
import { endOtherMove, followMove, hasOtherMove } from './leaving/moves.js'
import { meaningOf, type Context, type PassOutcome, type Meaning } from './outcome.js'
import { failedOutcome, publishDirectories } from './publish.js'
import { type OtherAgents, otherKeeper } from './other-keeper.js'
import { recordHeldBack, recordVersions } from './record-versions.js'
import type { AgentEvents } from './report/agent-events.js'
import { warnUnproven } from '../unproven.js'
import type { Metrics } from './report/report-metrics.js'
import type { Batch, Due, QueueResult } from './workqueue.js'

/** Why a pass is due, where no object is the cause. */
export const causes = { start: 'start', driftCheck: 'drift check', configuration: 'configuration' } as const

interface ReconcileOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly events: Pick<AgentEvents, 'pass'>
  readonly source: Pick<Source, 'latest' | 'load' | 'published'>
  readonly signal: AbortSignal
  /** Milliseconds to wait for another holder of a target's lock. */
  readonly lockTimeout: number
  /** Which agent this is. */
  readonly agent?: string | undefined
  /** Where this is absent, each directory that another agent keeps stays that agent's. */
  readonly others?: OtherAgents
  /** Paths that came back before their records could say that they had left: see departures.ts. */
  readonly isOwed?: (path: string) => boolean
  requireProven(): boolean
  readonly examining?: Examining
  /** Publish even what an operator holds, and let it go: no agent does. */
  readonly release?: boolean
  /** By operation name; undefined for a directory that was dropped meanwhile. */
  state(operation: string): DirectoryState | undefined
  /** Asked after a comparison: news that came meanwhile may be one half of a change, so the queue compares again once they are whole. */
  compareAgain?(operation: string): boolean
  /** A comparison has found drift, whose repair has not begun yet. */
  drifted?(state: DirectoryState): void
  /** A pass has ended, and the state says what came of it. */
  applied(state: DirectoryState, outcome: PassOutcome): void
}

interface DueWork extends Due {
  readonly operation: string
  readonly state: DirectoryState
  /** What the source had reported when the pass started. */
  readonly news: object | undefined
}

/**
 * One pass over each directory that is due: compare with the disk where that was asked, publish in one pair of barriers for all of
 * them, apply each outcome to its state, and report it. A directory that others have filled has a promise for a result: the removal of that
 * begins once all are reported, and no other directory waits for it.
 */
export async function reconcile(
  batch: Batch,
  options: ReconcileOptions,
): Promise<Map<string, QueueResult | Promise<QueueResult>>> {
  const due = await dueWork(batch, options)
  const kept = await keptFrom(due, options)
  const own = due.filter(({ state }) => state.configuration.follows === undefined && !kept.has(state.path))
  const removals = new Map<string, () => Promise<void>>()
  const outcomes = await publishOwn(own, removals, options)
  for (const [path, error] of kept) outcomes.set(path, failedOutcome(error))
  const results = new Map<string, QueueResult | Promise<QueueResult>>()
  // A new path comes before its old one.
  for (const work of [...own, ...due.filter((one) => !own.includes(one))]) {
    const outcome = outcomes.get(work.state.path) ?? (await followFor(work, options))
    // The agent does not report a directory that was dropped meanwhile.
    if (outcome === undefined || options.state(work.operation) !== work.state) continue
    results.set(work.operation, await finishPass(work, outcome, options))
  }
  for (const { operation, state } of own) {
    const removal = removals.get(state.path)
    const result = results.get(operation) ?? 'done'
    if (removal)
      results.set(
        operation,
        removal().then(() => result),
      )
  }
  return results
}

async function dueWork(batch: Batch, options: ReconcileOptions): Promise<DueWork[]> {
  const due: DueWork[] = []
  for (const [operation, { causes, since }] of batch) {
    const state = options.state(operation)
    if (state === undefined) continue
    const work = { operation, state, causes, since, news: state.facts.news }
    if (await isDue(work, options)) due.push(work)
  }
  return due
}

/** `removals` gets what is left to remove, by path. */
function publishOwn(
  own: readonly DueWork[],
  removals: Map<string, () => Promise<void>>,
  options: ReconcileOptions,
): Promise<Map<string, PassOutcome>> {
  const works = new Map(own.map((work) => [work.state.path, work]))
  const rejections = new Map(own.filter(isForObjects).map(({ state }) => [state.path, state.facts.rejection]))
  return publishDirectories(
    own.map(({ state }) => state.configuration),
    {
      ...options,
      requireProven: options.requireProven(),
      rejection: (path) => rejections.get(path),
      emptied: (path) => works.get(path)?.state.facts.passed.emptied ?? [],
      barrier: (seconds) => options.metrics.barrier(seconds),
      later: (path, removal) => void removals.set(path, removal),
    },
  )
}

/** The directories to which nothing is published now, with the reason. */
async function keptFrom(due: readonly DueWork[], options: ReconcileOptions): Promise<Map<string, Error>> {
  const { agent, isOwed } = options
  const kept = new Map<string, Error>()
  for (const { state } of due) {
    const error = isOwed?.(state.path) ? owed(state.path) : await otherKeeper(state, agent, options)
    if (error) kept.set(state.path, error)
  }
  return kept
}

/** undefined where the move has ended before, or meanwhile: dropped, a separate directory again, or moving elsewhere. */
async function followFor({ operation, state }: DueWork, options: ReconcileOptions): Promise<PassOutcome | undefined> {
  const { configuration } = state
  if (options.state(operation) !== state || configuration.follows === undefined) return undefined
  // A directory that is dropped meanwhile, or configured in another way, does not move any more.
  const outcome = await followMove(configuration, {
    ...options,
    signal: AbortSignal.any([options.signal, state.ended]),
  })
  return state.configuration === configuration ? outcome : undefined
}

/** Nothing but news of objects is the cause, and content that was rejected may still be the same; otherwise it is examined again. */
function isForObjects({ causes: why }: DueWork): boolean {
  return !Object.values(causes).some((cause) => why.includes(cause))
}

/** Compares with the disk where that was asked for. What only had to be compared, and is as it should be, is done. */
async function isDue({ operation, state, causes: why }: DueWork, options: ReconcileOptions): Promise<boolean> {
  const { log, metrics, source } = options
  if (!why.includes(causes.driftCheck)) return true
  const onlyCompare = why.every((cause) => cause === causes.driftCheck)
  await detectDrift(state, { log, metrics })
  if (onlyCompare && options.compareAgain?.(operation) === true) return false
  if (isAhead(state.facts)) setFloor(state.facts, source)
  const found = foundCondition(state.facts)
  if (found !== undefined && state.facts.published?.status === 'True') {
    // Its repair may take its time, or be refused.
    judgePublished(state, found)
    options.drifted?.(state)
  }
  const { facts } = state
  const due = !(
    onlyCompare &&
    facts.intact &&
    facts.published?.status === 'True' &&
    // A pass looks whether old content is still in use.
    facts.record?.retired !== true &&
    !isPastOver(facts) &&
    facts.configuration.follows === undefined &&
    !hasOtherMove(facts) &&
    !hasExpiryChanged(facts) &&
    !hasHoldChanged(facts)
  )
  if (!due) await recordHeldBack(state, log)
  return due
}

function judgePublished(state: DirectoryState, condition: ConditionState): void {
  state.happened({ kind: 'judged', type: 'Published', condition })
}

/** The condition of a comparison that found the disk unlike the published content, or unreadable; undefined: neither. */
function foundCondition({ uncompared, drift }: DirectoryFacts): ConditionState | undefined {
  if (uncompared !== undefined || drift === undefined) return uncompared
  return { status: 'False', reason: 'PublishFailed', message: `the disk differs from what was published: ${drift}` }
}

/** A certificate has ended since the last pass, or the clock was set. */
function hasExpiryChanged({ passed, published }: DirectoryFacts): boolean {
  const expired = dateFindings(passed.certificates, new Date()).length > 0
  return expired !== (published?.reason === 'CertificateExpired')
}

/** An operator has held the directory, or released it, or the hold's time is over. */
function hasHoldChanged({ record, published }: DirectoryFacts): boolean {
  const { hold, pin } = record ?? {}
  if (hold === undefined && (pin !== undefined) !== (published?.reason === 'RolledBack')) return true
  return (hold !== undefined) !== (published?.reason === 'Held')
}

/** A failure to report one directory must not keep the others from being reported. */
async function finishPass(work: DueWork, outcome: PassOutcome, options: ReconcileOptions): Promise<QueueResult> {
  try {
    return await applyAndReport(work, outcome, options)
  } catch (error) {
    const { path } = work.state
    options.log.error(
      { reason: 'PublishFailed', operation: work.operation, directory: path },
      `${path}: could not compare the published content with its record: ${messageOf(error)}`,
    )
    return 'retry'
  }
}

async function applyAndReport(work: DueWork, outcome: PassOutcome, options: ReconcileOptions): Promise<QueueResult> {
  const { operation, state, causes, since } = work
  const { log, metrics, events, source } = options
  const { path: directory } = state
  const drift = repairedDrift(state.facts, outcome, metrics)
  const changes = await applyOutcome(state, outcome, log).catch((error: unknown) => {
    const { uncompared } = state.facts
    if (uncompared !== undefined) judgePublished(state, uncompared)
    // Nor is it left without any outcome.
    options.applied(state, failedOutcome(error))
    throw error
  })
  const milliseconds = performance.now() - since
  const { intact, record } = state.facts
  const context: Context = { operation, directory, causes, milliseconds, drift, intact, hold: record?.hold, ...changes }
  const meaning = meaningOf(outcome, context)
  const { result } = meaning
  if (result !== undefined) metrics.publish(directory, result, result === 'refused' ? undefined : milliseconds / 1000)
  reportLog(log, meaning, context)
  events.pass(meaning)
  if (meaning.condition !== undefined) {
    // The error of a failed pass names the unreadable path itself.
    const found =
      outcome.kind === 'failed' && state.facts.uncompared !== undefined ? undefined : foundCondition(state.facts)
    const message = [meaning.condition, found].flatMap((each) => each?.message ?? []).join('; ')
    judgePublished(state, { ...meaning.condition, message })
  }
  if (outcome.kind === 'published') {
    await endOtherMove(state, options)
    state.happened({ kind: 'taken', news: work.news })
    if (outcome.unproven) warnUnproven(log, directory)
    setFloor(state.facts, source)
  }
  options.applied(state, outcome)
  return meaning.queue
}

type ObjectChanges = Pick<Context, 'removedObjects' | 'changedObjects'>

const noChanges: ObjectChanges = { removedObjects: [], changedObjects: [] }

/**
 * Brings the state up to an outcome, and answers which objects it changed. Rejects only where the record of an unchanged directory
 * cannot be read.
 *
 * @internal
 */
export async function applyOutcome(state: DirectoryState, outcome: PassOutcome, log: Log): Promise<ObjectChanges> {
  const before = state.facts
  if (outcome.kind !== 'published') {
    state.happened({ kind: 'passed', outcome })
    // The core has just read it: by an operator's command, not by anything that the source reported.
    if (outcome.kind === 'failed' && (outcome.reason === 'Held' || outcome.reason === 'RolledBack'))
      await compareWithRecord(state)
    if (outcome.kind === 'moving' && outcome.state !== 'done') await compareMoving(state, log)
    return noChanges
  }
  const isNew = outcome.change !== 'unchanged'
  // Another program (`holdfast sync`) published this meanwhile: the date and the hooks are its own. Or an earlier content went.
  if (!isNew && (before.record?.digest !== outcome.digest || isPastOver(before))) await compareWithRecord(state)
  state.happened({ kind: 'passed', outcome })
  const { objects } = outcome
  if (isNew) return { removedObjects: removedObjects(before, objects), changedObjects: changedObjects(before, objects) }
  await recordVersions(state, objects, log)
  return noChanges
}

/** A successful move counts even where the comparison fails; the next comparison repeats that. */
async function compareMoving(state: DirectoryState, log: Log): Promise<void> {
  try {
    await compareWithRecord(state)
  } catch (error) {
    const { path } = state
    log.error(
      { reason: 'PublishFailed', directory: path },
      `could not compare ${path} with its record: ${messageOf(error)}`,
    )
  }
}

function removedObjects(facts: DirectoryFacts, objects: readonly PublishedObject[]): PublishedObject[] {
  const published = new Set(objects.map(objectName))
  const configured = new Set(referencesOf(facts.configuration).map(objectName))
  const selected = new Set(selectionsOf(facts.configuration).map(({ reference }) => collectionOf(reference)))
  // No person needs to know of the removal of an object that the operator took out of the configuration.
  return facts.objects.filter(
    (object) =>
      !published.has(objectName(object)) && (configured.has(objectName(object)) || selected.has(collectionOf(object))),
  )
}

function collectionOf({ kind, namespace }: Pick<PublishedObject, 'kind' | 'namespace'>): string {
  return `${kind} ${namespace}`
}

function changedObjects(facts: DirectoryFacts, objects: readonly PublishedObject[]): PublishedObject[] {
  const before = new Map(facts.objects.map((object) => [objectName(object), object]))
  return objects.map(withoutPaths).filter((object) => {
    const known = before.get(objectName(object))
    return known?.uid !== object.uid || known.resourceVersion !== object.resourceVersion
  })
}

/** Reports the published versions to the source, so that a lagging list can never undo them. */
function setFloor(facts: DirectoryFacts, source: Pick<Source, 'latest' | 'published'>): void {
  const configuration = expand(facts.configuration, (reference) => source.latest(reference))
  const references = new Map(referencesOf(configuration).map((one) => [objectName(one), one]))
  for (const object of facts.objects) {
    const { uid, resourceVersion } = object
    const reference = references.get(objectName(object))
    if (reference) source.published(reference, { uid, resourceVersion })
  }
}

/** Writes the log's lines about one pass over a directory. @internal */
export function reportLog(log: Log, { lines }: Pick<Meaning, 'lines'>, context: Context): void {
  const { operation, directory, causes } = context
  const milliseconds = Math.round(context.milliseconds * 10) / 10
  for (const { level, reason, message, fields } of lines) {
    log[level]({ ...(reason && { reason }), operation, directory, causes, milliseconds, ...fields }, message)
  }
}
