import { dateFindings } from '../directories/validate.js'
import type { Log } from '../log.js'
import { describeReference, type Source } from '../objects/types.js'
import { compare } from './compare.js'
import { referencesOf } from '../config/references.js'
import type { DirectoryState } from './directory-state.js'
import type { AgentEvents } from './events.js'
import type { Metrics } from './metrics.js'
import { causes } from './operations.js'
import { publish } from './publish.js'
import { recordHeldBack } from './record-versions.js'
import type { Batch, Due, Verdict } from './queue.js'
import { count, settle } from './settle.js'
import { tell } from './tell.js'
import { warnUnproven } from './unproven.js'
import { publishedVerdict, queueVerdict } from './verdicts.js'
import type { Attempt } from './attempt.js'

export interface PublisherOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly events: Pick<AgentEvents, 'attempt'>
  readonly signal: AbortSignal
  readonly lockTimeout: number
  requireProven(): boolean
  source(): Pick<Source, 'latest' | 'published'>
  /** By operation name; undefined for what was dropped meanwhile. */
  state(operation: string): DirectoryState | undefined
  /** An attempt has been made, and the state says what came of it. */
  settled(state: DirectoryState, attempt: Attempt): void
}

interface Work extends Due {
  readonly operation: string
  readonly state: DirectoryState
}

/** One batch of publications: compare where that was asked, publish in one pair of barriers, remember, count and tell. */
export async function publishBatch(batch: Batch, options: PublisherOptions): Promise<Map<string, Verdict>> {
  const verdicts = new Map<string, Verdict>()
  const due: Work[] = []
  for (const [operation, { causes, since }] of batch) {
    const state = options.state(operation)
    if (state === undefined) continue
    const work = { operation, state, causes, since }
    if (await isDue(work, options)) due.push(work)
  }
  const attempts = await publish(
    due.map(({ state }) => state.configuration),
    {
      latest: (reference) => options.source().latest(reference),
      requireProven: options.requireProven(),
      lockTimeout: options.lockTimeout,
      signal: options.signal,
      log: options.log,
      barrier: (seconds) => options.metrics.barrier(seconds),
    },
  )
  for (const work of due) {
    const attempt = attempts.get(work.state.path)
    // A directory that was dropped meanwhile is nobody's any more.
    if (attempt === undefined || options.state(work.operation) !== work.state) continue
    verdicts.set(work.operation, queueVerdict(attempt))
    try {
      await finish(work, attempt, options)
    } catch (error) {
      // What is wrong with one of them must not keep the others from being told.
      verdicts.set(work.operation, 'retry')
      const message = error instanceof Error ? error.message : String(error)
      options.log.error(
        { reason: 'PublishFailed', operation: work.operation, directory: work.state.path },
        `${work.state.path}: what was published could not be looked at: ${message}`,
      )
    }
  }
  return verdicts
}

/** Compares with the disk where that was asked for. What only had to be compared, and is as it should be, is done. */
async function isDue({ state, causes: why, operation }: Work, { log, metrics }: PublisherOptions): Promise<boolean> {
  if (!why.includes(causes.driftCheck)) return true
  await notice(state, operation, { log, metrics })
  const onlyCompare = why.every((cause) => cause === causes.driftCheck)
  const due = !(onlyCompare && state.whole && state.published?.status === 'True' && !hasExpiryChanged(state))
  if (!due) await recordHeldBack(state, log)
  return due
}

/** Compares a directory with its record; drift is counted once, however long it takes to repair. */
export async function notice(
  state: DirectoryState,
  operation: string,
  { log, metrics }: Pick<PublisherOptions, 'log' | 'metrics'>,
): Promise<void> {
  const known = state.drift
  const fields = { operation, directory: state.path }
  try {
    state.drift = await compare(state)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    log.error({ reason: 'PublishFailed', ...fields }, `${state.path} cannot be compared with its record: ${message}`)
  }
  if (state.drift !== undefined && known === undefined) {
    metrics.drift(state.path)
    log.warn(fields, `${state.path} differs from what was published: ${state.drift}`)
  }
  metrics.ready(state.path, state.whole)
}

/** A certificate has ended since the last attempt, or the clock was set. */
function hasExpiryChanged({ certificates, published }: DirectoryState): boolean {
  const expired = dateFindings(certificates, new Date()).length > 0
  return expired !== (published?.reason === 'CertificateExpired')
}

async function finish(work: Work, attempt: Attempt, options: PublisherOptions): Promise<void> {
  const { operation, state, causes, since } = work
  const { drift } = state
  const { removed, changed } = await settle(state, attempt, options.log)
  const milliseconds = performance.now() - since
  count(options.metrics, state, attempt, milliseconds / 1000)
  const circumstances = { operation, directory: state.path, causes, milliseconds, drift, removed, changed }
  tell(options.log, attempt, circumstances)
  options.events.attempt(attempt, circumstances)
  const verdict = publishedVerdict(attempt, state.whole)
  if (verdict !== undefined) {
    const { message } = verdict
    const suffix = state.drift === undefined ? '' : `; the disk differs from what was published: ${state.drift}`
    state.setPublished({ ...verdict, message: message + suffix }, new Date())
  }
  if (attempt.kind === 'published') {
    if (attempt.unproven) warnUnproven(options.log, state.path)
    feedBack(state, options.source())
  }
  options.settled(state, attempt)
}

/** Tells the source what is published, so that a lagging list can never undo it. */
function feedBack(state: DirectoryState, source: Pick<Source, 'published'>): void {
  const references = new Map(referencesOf(state.configuration).map((one) => [describeReference(one), one]))
  for (const { kind, namespace, name, uid, resourceVersion } of state.objects) {
    const reference = references.get(`${kind} ${namespace}/${name}`)
    if (reference) source.published(reference, { uid, resourceVersion })
  }
}
