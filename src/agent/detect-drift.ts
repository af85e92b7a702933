import { objectName } from '../object-name.js'
import { describeDifferences } from '../directories/verify.js'
import { keeper, readPublication } from '../durable/index.js'
import type { Publication } from '../durable/types.js'
import { messageOf } from '../errors.js'
import { listed } from '../listed.js'
import type { Log } from '../log.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import type { DirectoryState } from './directory-state.js'
import type { PassOutcome } from './outcome.js'
import { reportHooksDue, reportStanding, type Metrics } from './report/report-metrics.js'

/** More differences than a line can show are only counted. */
const shown = 5

interface DriftReports {
  readonly log: Log
  readonly metrics: Metrics
}

/**
 * Takes a directory into the agent's care: compares it with its record, and sets the conditions that hold until the source reports.
 * What an earlier run knew (`state.restore`) stays where it still holds.
 */
export async function startDirectory(state: DirectoryState, reports: DriftReports): Promise<void> {
  const { path, configuration } = state
  const { metrics } = reports
  const now = new Date()
  metrics.follow(
    path,
    configuration.afterPublish.map(({ name }) => name),
  )
  await detectDrift(state, reports)
  if (state.publishedAt) metrics.publishedAt(path, state.publishedAt)
  if (state.confirmedAt) metrics.confirmed(path, state.confirmedAt)
  if (!state.intact) {
    const message =
      state.letGo !== undefined
        ? `${keeper.letGoText(path, state.letGo)}, and has changed since: it comes back by an adoption`
        : state.drift === undefined
          ? 'nothing is published yet'
          : `the disk differs from what was published: ${state.drift}`
    state.setPublished(state.uncompared ?? { status: 'False', reason: 'SourceUnavailable', message }, now)
  } else if (state.published?.status !== 'True') {
    const message = 'the disk holds the content that was published before the agent started'
    state.setPublished({ status: 'True', reason: 'Published', message }, now)
  }
  reportStanding(metrics, state)
  if (!state.fresh) {
    const message = 'the source has not reported yet'
    state.setFresh({ status: 'False', reason: 'NotConfirmed', message }, now)
  }
}

/** Compares a directory with its record, and reports the difference; drift is counted once, however long it takes to repair. */
export async function detectDrift(state: DirectoryState, { log, metrics }: DriftReports): Promise<void> {
  const known = state.drift
  const { path } = state
  const fields = { operation: state.publishOperation, directory: path }
  try {
    state.drift = await compareWithRecord(state)
  } catch (error) {
    log.error({ reason: 'PublishFailed', ...fields }, `could not compare ${path} with its record: ${messageOf(error)}`)
  }
  if (state.drift !== undefined && known === undefined) {
    metrics.drift(path)
    log.warn(fields, `${path} differs from what was published: ${state.drift}`)
  }
  metrics.ready(path, state.intact)
  metrics.held(path, state.hold !== undefined)
  metrics.moving(path, state.configuration.follows !== undefined)
  reportHooksDue(metrics, state)
}

/**
 * What a pass has repaired. No comparison need have seen it: news and retries come without one, and the disk may change, or be in the hands
 * of another publication, while it is compared. The state must not hold the outcome yet.
 */
export function repairedDrift(
  { drift, desired, path }: DirectoryState,
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
  const hadRecord = state.digest !== undefined
  const publication = await read(state.path).catch((error: unknown) => {
    state.doubt(error)
    throw error
  })
  state.observe(publication)
  state.isAhead = false
  if (publication === undefined) return hadRecord ? 'its publication record is missing' : undefined
  // What others have made of it meanwhile is theirs.
  if (publication.letGo !== undefined) return undefined
  // A pin is an operator's word: the end of its time makes no drift of the pinned content.
  if (publication.pin !== undefined) state.desired = { digest: publication.digest, objects: state.objects }
  const other = otherContent(state, publication)
  const differences = publication.differences.length === 0 ? [] : [summary(publication)]
  if (other === undefined) return differences[0]
  state.isAhead = other === 'newer'
  if (state.isAhead) return differences[0]
  state.intact = false
  return [other, ...differences].join('; ')
}

/**
 * Why the record is not of the desired content: its disk was mounted over for a time, a backup was restored, another program has published
 * there. An old path gets its content from the new one. `newer`: nothing older may take its place, so the source has to report the newest
 * first.
 */
function otherContent(
  { desired, configuration }: DirectoryState,
  { digest, publishedAt, objects }: Publication,
): string | undefined {
  if (desired === undefined || desired.digest === digest || configuration.follows !== undefined) return undefined
  const wanted = new Map(desired.objects.map((object) => [objectName(object), object]))
  const others = objects.flatMap((object) => {
    const { uid, resourceVersion } = object
    const known = wanted.get(objectName(object))
    return known?.uid === uid && known.resourceVersion === resourceVersion ? [] : [{ object, known }]
  })
  const isNewer = ({ object, known }: (typeof others)[number]): boolean =>
    known?.uid === object.uid && (compareResourceVersions(object.resourceVersion, known.resourceVersion) ?? 0) > 0
  if (others.some(isNewer)) return 'newer'
  const versions = others.map(({ object, known }) => {
    if (known === undefined) return `${objectName(object)} ${object.resourceVersion}`
    // Two clusters may have the same names and versions.
    const [is, wants] = [object, known].map(({ uid, resourceVersion }) =>
      object.uid === known.uid ? resourceVersion : `${resourceVersion} (uid ${uid})`,
    )
    return `${objectName(object)} ${is} instead of ${wants}`
  })
  const from = objects.length === 0 ? 'no object' : versions.length === 0 ? 'the same objects' : listed(versions, shown)
  return `its content was published at ${publishedAt.toISOString()}, from ${from}`
}

function summary(publication: Publication): string {
  const sentences = describeDifferences(publication)
  const more = sentences.length - shown
  return sentences.slice(0, shown).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
