import { referencesOf } from '../config/references.js'
import { dateFindings } from '../directories/validate.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { describeReference, type Source } from '../objects/types.js'
import { compareWithRecord, detectDrift } from './detect-drift.js'
import { withoutPaths, type DirectoryState, type PublishedObject } from './directory-state.js'
import { meaningOf, type Context, type Outcome } from './outcome.js'
import { publish } from './publish.js'
import { recordHeldBack, recordVersions } from './record-versions.js'
import type { AgentEvents } from './report-events.js'
import { reportLog, warnUnproven } from './report-log.js'
import { reportMetrics, type Metrics } from './report-metrics.js'
import type { Batch, Due, QueueResult } from './workqueue.js'

/** Why a pass is due, where no object is the cause. */
export const causes = { start: 'start', driftCheck: 'drift check', configuration: 'configuration' } as const

export interface ReconcileOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly events: Pick<AgentEvents, 'pass'>
  readonly source: Pick<Source, 'latest' | 'published'>
  readonly signal: AbortSignal
  /** Milliseconds to wait for another holder of a target's lock. */
  readonly lockTimeout: number
  requireProven(): boolean
  /** By operation name; undefined for what was dropped meanwhile. */
  state(operation: string): DirectoryState | undefined
  /** A pass has ended, and the state says what came of it. */
  applied(state: DirectoryState, outcome: Outcome): void
}

interface Work extends Due {
  readonly operation: string
  readonly state: DirectoryState
}

/**
 * One pass over each directory that is due: compare with the disk where that was asked, publish in one pair of barriers for all of
 * them, apply each outcome to its state, and report it.
 */
export async function reconcile(batch: Batch, options: ReconcileOptions): Promise<Map<string, QueueResult>> {
  const results = new Map<string, QueueResult>()
  const due: Work[] = []
  for (const [operation, { causes, since }] of batch) {
    const state = options.state(operation)
    if (state === undefined) continue
    const work = { operation, state, causes, since }
    if (await isDue(work, options)) due.push(work)
  }
  const outcomes = await publish(
    due.map(({ state }) => state.configuration),
    {
      ...options,
      requireProven: options.requireProven(),
      barrier: (seconds) => options.metrics.barrier(seconds),
    },
  )
  for (const work of due) {
    const outcome = outcomes.get(work.state.path)
    // A directory that was dropped meanwhile is nobody's any more.
    if (outcome === undefined || options.state(work.operation) !== work.state) continue
    results.set(work.operation, await finish(work, outcome, options))
  }
  return results
}

/** Compares with the disk where that was asked for. What only had to be compared, and is as it should be, is done. */
async function isDue({ state, causes: why }: Work, { log, metrics }: ReconcileOptions): Promise<boolean> {
  if (!why.includes(causes.driftCheck)) return true
  await detectDrift(state, { log, metrics })
  const onlyCompare = why.every((cause) => cause === causes.driftCheck)
  const due = !(onlyCompare && state.intact && state.published?.status === 'True' && !hasExpiryChanged(state))
  if (!due) await recordHeldBack(state, log)
  return due
}

/** A certificate has ended since the last attempt, or the clock was set. */
function hasExpiryChanged({ certificates, published }: DirectoryState): boolean {
  const expired = dateFindings(certificates, new Date()).length > 0
  return expired !== (published?.reason === 'CertificateExpired')
}

/** What is wrong with the report of one directory must not keep the others from being reported. */
async function finish(work: Work, outcome: Outcome, options: ReconcileOptions): Promise<QueueResult> {
  try {
    return await applyAndReport(work, outcome, options)
  } catch (error) {
    const { path } = work.state
    options.log.error(
      { reason: 'PublishFailed', operation: work.operation, directory: path },
      `${path}: what was published could not be looked at: ${messageOf(error)}`,
    )
    return 'retry'
  }
}

async function applyAndReport(work: Work, outcome: Outcome, options: ReconcileOptions): Promise<QueueResult> {
  const { operation, state, causes, since } = work
  const { log, metrics, events, source } = options
  const { drift, path: directory } = state
  const changes = await applyOutcome(state, outcome, log)
  const milliseconds = performance.now() - since
  const { intact } = state
  const context: Context = { operation, directory, causes, milliseconds, drift, intact, ...changes }
  const meaning = meaningOf(outcome, context)
  reportMetrics(metrics, meaning, context, state)
  reportLog(log, meaning, context)
  events.pass(meaning)
  if (meaning.condition !== undefined) {
    const suffix = state.drift === undefined ? '' : `; the disk differs from what was published: ${state.drift}`
    state.setPublished({ ...meaning.condition, message: meaning.condition.message + suffix }, new Date())
  }
  if (outcome.kind === 'published') {
    if (outcome.unproven) warnUnproven(log, directory)
    setFloor(state, source)
  }
  options.applied(state, outcome)
  return meaning.queue
}

/** Reports to the source what is published, so that a lagging list can never undo it. */
function setFloor(state: DirectoryState, source: Pick<Source, 'published'>): void {
  const references = new Map(referencesOf(state.configuration).map((one) => [describeReference(one), one]))
  for (const { kind, namespace, name, uid, resourceVersion } of state.objects) {
    const reference = references.get(`${kind} ${namespace}/${name}`)
    if (reference) source.published(reference, { uid, resourceVersion })
  }
}

type ObjectChanges = Pick<Context, 'removedObjects' | 'changedObjects'>

/**
 * Brings the state up to an outcome, and answers which objects it changed. Rejects only where the record of an unchanged directory
 * cannot be read.
 */
export async function applyOutcome(state: DirectoryState, outcome: Outcome, log: Log): Promise<ObjectChanges> {
  if (outcome.kind === 'failed' && outcome.published) state.intact = false
  if (outcome.kind !== 'published') return { removedObjects: [], changedObjects: [] }
  const { change, digest, objects, certificates } = outcome
  const changes =
    change === 'unchanged'
      ? { removedObjects: [], changedObjects: [] }
      : { removedObjects: removedObjects(state, objects), changedObjects: changedObjects(state, objects) }
  if (change !== 'unchanged') {
    state.publishedAt = new Date()
    state.pendingHooks = outcome.hooks
    state.generation += 1
  } else if (state.digest !== digest) {
    // Somebody else (`holdfast sync`) published this meanwhile: the date and the hooks are theirs.
    await compareWithRecord(state)
  }
  state.compared = true
  state.intact = true
  state.drift = undefined
  state.digest = digest
  state.objects = objects.map(withoutPaths)
  if (change === 'unchanged') await recordVersions(state, objects, log)
  else state.recordedObjects = state.objects
  state.certificates = certificates
  return changes
}

function removedObjects(state: DirectoryState, objects: readonly PublishedObject[]): PublishedObject[] {
  const published = new Set(objects.map(nameOf))
  const configured = new Set(referencesOf(state.configuration).map(describeReference))
  // What the operator took out of the configuration was not removed by anything that anybody needs to know of.
  return state.objects.filter((object) => !published.has(nameOf(object)) && configured.has(nameOf(object)))
}

function changedObjects(state: DirectoryState, objects: readonly PublishedObject[]): PublishedObject[] {
  const before = new Map(state.objects.map((object) => [nameOf(object), object]))
  return objects.map(withoutPaths).filter((object) => {
    const known = before.get(nameOf(object))
    return known?.uid !== object.uid || known.resourceVersion !== object.resourceVersion
  })
}

function nameOf({ kind, namespace, name }: PublishedObject): string {
  return `${kind} ${namespace}/${name}`
}
