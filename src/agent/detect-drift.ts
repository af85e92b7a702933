import { keeper, readPublication } from '../durable/index.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { Condition, ConditionState } from './conditions.js'
import type { DirectoryFacts, DirectoryState } from './directory-state.js'
import type { PassOutcome } from './outcome.js'
import type { Metrics } from './report/report-metrics.js'

interface DriftReports {
  readonly log: Log
  readonly metrics: Pick<Metrics, 'drift'>
}

/**
 * Takes a directory into the agent's care: compares it with its record, and sets the conditions that hold until the source reports.
 * What an earlier run knew (the event `restored`) stays where it still holds.
 */
export async function startDirectory(state: DirectoryState, reports: DriftReports): Promise<void> {
  const { path } = state
  const now = new Date()
  const judge = (type: Condition['type'], condition: ConditionState) =>
    state.happened({ kind: 'judged', type, condition }, now)
  await detectDrift(state, reports)
  const { record, intact, drift, uncompared, published, fresh } = state.facts
  if (!intact) {
    const message =
      record?.letGo !== undefined
        ? `${keeper.letGoText(path, record.letGo)}, and has changed since: it comes back by an adoption`
        : drift === undefined
          ? 'nothing is published yet'
          : `the disk differs from what was published: ${drift}`
    judge('Published', uncompared ?? { status: 'False', reason: 'SourceUnavailable', message })
  } else if (published?.status !== 'True') {
    const message = 'the disk holds the content that was published before the agent started'
    judge('Published', { status: 'True', reason: 'Published', message })
  }
  if (!fresh) {
    const message = 'the source has not reported yet'
    judge('Fresh', { status: 'False', reason: 'NotConfirmed', message })
  }
}

/** Compares a directory with its record, and reports the difference; drift is counted once, however long it takes to repair. */
export async function detectDrift(state: DirectoryState, { log, metrics }: DriftReports): Promise<void> {
  const known = state.facts.drift
  const { path } = state
  const fields = { operation: state.publishOperation, directory: path }
  try {
    await compareWithRecord(state)
  } catch (error) {
    log.error({ reason: 'PublishFailed', ...fields }, `could not compare ${path} with its record: ${messageOf(error)}`)
  }
  const { drift } = state.facts
  if (drift !== undefined && known === undefined) {
    metrics.drift(path)
    log.warn(fields, `${path} differs from what was published: ${drift}`)
  }
}

/**
 * What a pass has repaired. No comparison need have seen it: news and retries come without one, and the disk may change, or be in the hands
 * of another publication, while it is compared. The state must not hold the outcome yet.
 */
export function repairedDrift(
  { drift, desired, configuration: { path } }: DirectoryFacts,
  outcome: PassOutcome,
  metrics: Pick<Metrics, 'drift'>,
): string | undefined {
  if (drift !== undefined || outcome.kind !== 'published') return drift
  const { change, repeated = false, digest } = outcome
  if (change === 'unchanged' || repeated || desired?.digest !== digest) return undefined
  metrics.drift(path)
  return 'content that another program changed after the last comparison'
}

/**
 * Compares a directory with its record, and its record with the desired content. Answers the differences from the published content, for
 * people; undefined where there are none, or no publication yet. Rejects where it cannot read the directory: nothing vouches for the disk
 * then, and the state keeps what else it knows.
 */
export async function compareWithRecord(
  state: DirectoryState,
  read: typeof readPublication = readPublication,
): Promise<string | undefined> {
  const publication = await read(state.path).catch((error: unknown) => {
    state.happened({ kind: 'unreadable', error })
    throw error
  })
  state.happened({ kind: 'compared', publication })
  return state.facts.drift
}
