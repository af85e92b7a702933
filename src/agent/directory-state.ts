import { expand, needs, referencesOf, selectionsOf } from '../config/references.js'
import type { DirectoryConfiguration } from '../config/types.js'
import type { CertificateDate } from '../directories/types.js'
import type { Publication } from '../durable/types.js'
import { failureFrom, messageOf } from '../errors.js'
import { listed, objectName } from '../message-text.js'
import type { ObjectReference, ObjectVersion, Source } from '../objects/types.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import {
  transition,
  withoutPaths,
  type Condition,
  type ConditionState,
  type PublishedObject,
  type Rejection,
} from './conditions.js'
import { describeDifferences } from '../directories/verify.js'
import type { Moving } from './leaving/moving.js'
import type { PassOutcome, PublishedOutcome } from './outcome.js'

/** A content, and what gave it. */
interface DesiredObjects {
  readonly digest: string
  readonly objects: readonly PublishedObject[]
}

/** What an earlier run knew of the published content: it may have been killed before it recorded all of it. */
interface RememberedContent {
  readonly digest?: string | null
  readonly objects?: readonly PublishedObject[]
}

/** What an earlier run has left in its status. */
interface EarlierStatus extends RememberedContent {
  readonly conditions: readonly Condition[]
  readonly confirmedAt: string | null
}

/**
 * Milliseconds between two times that versions are recorded without a publication. Some objects get another version every two
 * seconds, and never other content (an annotation with a lease in it): a record that grew with each would never stop growing.
 */
export const recordingInterval = 10 * 60_000

/** Milliseconds after its end in which a hold, pin or age limit still sets the timer. */
const overdue = 10_000

/** What a record says of a directory; a publication is its own record. */
type RecordFacts = Readonly<
  Omit<Publication, 'path' | 'actual' | 'settled' | 'durable' | 'removing' | 'differences' | 'objects' | 'pendingHooks'>
> & {
  /** In the versions that the record on the disk names: after a restart, the agent accepts no older ones. */
  readonly objects: readonly PublishedObject[]
  readonly pendingHooks: readonly string[]
}

/** The findings of the last pass that succeeded. */
interface PassFacts {
  readonly certificates: readonly CertificateDate[]
  /** Published files that held certificates before, and are empty. */
  readonly emptied: readonly string[]
  /** Its file system proves no durability; undefined: no pass has looked. */
  readonly unproven: boolean | undefined
}

/**
 * What the agent knows of one directory: values, which `next` alone makes. Never content: the agent reads the present one from the disk, and
 * the desired one from the source.
 */
export interface DirectoryFacts {
  readonly configuration: DirectoryConfiguration
  /** undefined: there is none, or it is unread. */
  readonly record: RecordFacts | undefined
  /** What is known of the record until it is read for the first time since the start; undefined: it has been. */
  readonly unread: RememberedContent | undefined
  /** The objects of the published content, each in the newest version that the agent knows. */
  readonly objects: readonly PublishedObject[]
  /** This agent has published to it since the start, or found it as it should be. */
  readonly keeps: boolean
  /** The disk holds what the record says, known to be durable. */
  readonly intact: boolean
  /** What differed from the record at the last comparison; undefined: nothing. */
  readonly drift: string | undefined
  /** The condition of a last comparison that could not read the disk. The findings of an earlier comparison stay beside it. */
  readonly uncompared: ConditionState | undefined
  /** What `beforePublish` has rejected last; undefined once something is published. */
  readonly rejection: Rejection | undefined
  /**
   * The desired content, as the last successful pass found or made it: the agent compares the disk with this, beside any record. undefined:
   * no source has reported it yet, and the record decides.
   */
  readonly desired: DesiredObjects | undefined
  /** When newer versions of the objects were last recorded without a publication, or that failed; by performance.now(). */
  readonly recordedAt: number
  /** The last report of the source that no pass has published; each report is another object. */
  readonly news: object | undefined
  readonly passed: PassFacts
  /** When the source last confirmed the published versions as the newest. */
  readonly confirmedAt: Date | undefined
  readonly published: Condition | undefined
  readonly fresh: Condition | undefined
  /** An object of which the source was told a newer version, which it has yet to read. */
  readonly behind: string | undefined
  readonly notCurrentSince: Date | undefined
  /** The directory, which was published, is gone from the disk. */
  readonly missingSince: Date | undefined
}

/** All that changes what the agent knows of a directory. */
export type DirectoryEvent =
  | { readonly kind: 'configured'; readonly configuration: DirectoryConfiguration }
  /** What an earlier run has left in its status. */
  | { readonly kind: 'restored'; readonly status: EarlierStatus }
  /** A comparison has read the record and the disk; undefined: there is no record. */
  | { readonly kind: 'compared'; readonly publication: Publication | undefined }
  /** A comparison could not read them. */
  | { readonly kind: 'unreadable'; readonly error: unknown }
  /** A pass has come to its end. */
  | { readonly kind: 'passed'; readonly outcome: PassOutcome }
  /** A publication was made of all that the source had reported then. */
  | { readonly kind: 'taken'; readonly news: object | undefined }
  /** The record names these versions without a publication, or still does, since it could not be written; now by performance.now(). */
  | { readonly kind: 'recorded'; readonly objects: readonly PublishedObject[]; readonly at: number }
  | { readonly kind: 'hook ran'; readonly key: string }
  /** The record says nothing of a move any more. */
  | { readonly kind: 'move ended' }
  /** An operator gives the directory back to this agent, or its other agent has ended. */
  | { readonly kind: 'claimed' }
  /** The source has reported something about one of its objects. */
  | { readonly kind: 'reported' }
  | { readonly kind: 'told'; readonly behind: string | undefined }
  | { readonly kind: 'confirmed'; readonly at: Date }
  | { readonly kind: 'judged'; readonly type: Condition['type']; readonly condition: ConditionState }

type EventOf<Kind extends DirectoryEvent['kind']> = Extract<DirectoryEvent, { kind: Kind }>
type Changes = Partial<DirectoryFacts>

/** What each event changes, at this time; all else stays. */
const changes: {
  readonly [Kind in DirectoryEvent['kind']]: (facts: DirectoryFacts, event: EventOf<Kind>, now: Date) => Changes
} = {
  configured: (_, { configuration }) => ({ configuration }),
  restored: (facts, { status }) => afterRestore(facts, status),
  compared: (facts, { publication }, now) => afterComparison(facts, publication, now),
  unreadable: (_, { error }) => {
    const message = `the disk could not be compared with what was published: ${messageOf(error)}`
    return { intact: false, uncompared: { status: 'Unknown', reason: failureFrom(error).reason, message } }
  },
  passed: (facts, { outcome }, now) => {
    if (outcome.kind === 'published') return afterPublication(facts, outcome, now)
    if (outcome.kind === 'moving') return afterMove(facts, outcome, now)
    if (outcome.kind !== 'failed') return {}
    return { ...(outcome.published && { intact: false }), ...(outcome.rejection && { rejection: outcome.rejection }) }
  },
  taken: ({ news }, event) => (news === event.news ? { news: undefined } : {}),
  recorded: ({ record }, { objects, at }) => ({ record: record && { ...record, objects }, recordedAt: at }),
  'hook ran': ({ record }, { key }) => ({
    record: record && { ...record, pendingHooks: record.pendingHooks.filter((pending) => pending !== key) },
  }),
  'move ended': ({ record }) => ({ record: record && withoutMove(record) }),
  claimed: () => ({ keeps: false }),
  reported: () => ({ news: {} }),
  told: (_, { behind }) => ({ behind }),
  confirmed: (_, { at }) => ({ confirmedAt: at }),
  judged: ({ published, fresh }, { type, condition }, now) =>
    type === 'Published'
      ? { published: transition(type, published, condition, now) }
      : { fresh: transition(type, fresh, condition, now) },
}

/** The facts after an event. @internal */
export function next(facts: DirectoryFacts, event: DirectoryEvent, now: Date): DirectoryFacts {
  const change = changes[event.kind] as (facts: DirectoryFacts, event: DirectoryEvent, now: Date) => Changes
  const after = { ...facts, ...change(facts, event, now) }
  return { ...after, notCurrentSince: isCurrent(after) ? undefined : (after.notCurrentSince ?? now) }
}

function afterRestore({ unread }: DirectoryFacts, { conditions, confirmedAt, ...content }: EarlierStatus): Changes {
  const published = conditions.find(({ type }) => type === 'Published')
  return {
    unread: unread && content,
    published,
    fresh: conditions.find(({ type }) => type === 'Fresh'),
    notCurrentSince: parsedDate(published?.lastTransitionTime),
    confirmedAt: parsedDate(confirmedAt),
  }
}

function parsedDate(text: string | null | undefined): Date | undefined {
  const date = new Date(text ?? NaN)
  return Number.isNaN(date.getTime()) ? undefined : date
}

function afterComparison(facts: DirectoryFacts, publication: Publication | undefined, now: Date): Changes {
  if (publication === undefined) {
    const drift = facts.record ? 'its publication record is missing' : undefined
    const none = { record: undefined, unread: undefined, objects: [], missingSince: undefined }
    return { ...none, uncompared: undefined, intact: false, drift }
  }
  const { digest, letGo, pin, settled, differences, actual } = publication
  const isWhole = settled && differences.length === 0
  const recorded = publication.objects.map(withoutPaths)
  const objects = newestObjects(facts, digest, recorded)
  // A directory that was let go belongs to whoever has changed it since. A pinned content stays the desired one when the pin's time ends.
  const desired = letGo === undefined && pin !== undefined ? { digest, objects } : facts.desired
  const found = letGo === undefined ? driftFrom({ ...facts, desired }, publication) : undefined
  return {
    uncompared: undefined,
    record: recordFrom(facts, publication, recorded),
    unread: undefined,
    objects,
    desired,
    intact: isWhole && found?.isOther !== true,
    drift: found?.drift,
    missingSince: actual === undefined ? (facts.missingSince ?? now) : undefined,
  }
}

/** More differences than a line can show are only counted. */
const shown = 5

interface Drift {
  /** The differences from the published content, for people; undefined: there are none. */
  readonly drift: string | undefined
  /** The record is of another content than the desired one. */
  readonly isOther: boolean
}

/** How the disk differs from the record, and the record from the desired content. */
function driftFrom(by: Pick<DirectoryFacts, 'desired' | 'configuration'>, publication: Publication): Drift {
  const other = otherContent(by, publication)
  const differences = publication.differences.length === 0 ? [] : [summary(publication)]
  if (other === undefined || other === 'newer') return { drift: differences[0], isOther: false }
  return { drift: [other, ...differences].join('; '), isOther: true }
}

/** The record is of newer versions than the desired content: the same source told them to another program first, as `holdfast sync`. */
export function isAhead({ record, ...by }: Pick<DirectoryFacts, 'record' | 'desired' | 'configuration'>): boolean {
  return record?.letGo === undefined && record ? otherContent(by, record) === 'newer' : false
}

/**
 * Why the record is not of the desired content: its disk was mounted over for a time, a backup was restored, another program has published
 * there. An old path gets its content from the new one. `newer`: nothing older may take its place, so the source has to report the newest
 * first.
 */
function otherContent(
  { desired, configuration }: Pick<DirectoryFacts, 'desired' | 'configuration'>,
  { digest, publishedAt, objects }: Pick<RecordFacts, 'digest' | 'publishedAt' | 'objects'>,
): string | undefined {
  if (desired === undefined || desired.digest === digest || configuration.follows !== undefined) return undefined
  const wanted = new Map(desired.objects.map((object) => [objectName(object), object]))
  const others = objects.flatMap((object) => {
    const known = wanted.get(objectName(object))
    return isSameVersion(object, known) ? [] : [{ object, known }]
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

function recordFrom({ record }: DirectoryFacts, read: Publication, objects: readonly PublishedObject[]): RecordFacts {
  const { path: _path, actual: _actual, settled: _settled, durable: _durable, removing: _removing, ...rest } = read
  const { differences: _differences, ...said } = rest
  // A publication of this process has been dated already, some milliseconds apart: it is no news for a report to the cluster.
  const isDated = record?.sequence === said.sequence && record.digest === said.digest
  return { ...said, objects, ...(isDated && { publishedAt: record.publishedAt }) }
}

/**
 * The objects of the content that a record names (`recorded`), in the newest versions that the record, this process, or an earlier run of it
 * knows.
 */
function newestObjects(
  { record, unread, objects }: DirectoryFacts,
  digest: string,
  recorded: readonly PublishedObject[],
) {
  // Another program may have recorded newer versions of the same content, and the record may wait for those of this process.
  if (record?.digest === digest) return newestVersions(objects, recorded, 0)
  return unread?.digest === digest ? newestVersions(recorded, unread.objects ?? [], 1) : recorded
}

/** Each object, or the same one of `others` in a newer version. `unordered`: 1 if that counts as newer where versions have no order. */
function newestVersions(objects: readonly PublishedObject[], others: readonly PublishedObject[], unordered: 0 | 1) {
  const known = new Map(others.map((object) => [objectName(object), object]))
  return objects.map((object) => {
    const other = known.get(objectName(object))
    if (other?.uid !== object.uid) return object
    const order = compareResourceVersions(other.resourceVersion, object.resourceVersion) ?? unordered
    return order > 0 ? withoutPaths(other) : object
  })
}

/** The record of a directory, or an empty one where the agent has read none yet. */
function recordOrEmpty({ record }: DirectoryFacts, now: Date): RecordFacts {
  return record ?? { digest: '', sequence: 0, publishedAt: now, pendingHooks: [], objects: [] }
}

function afterPublication(facts: DirectoryFacts, outcome: PublishedOutcome, now: Date): Changes {
  const { change, digest, sequence, certificates, warnings, unproven } = outcome
  const objects = outcome.objects.map(withoutPaths)
  const isNew = change !== 'unchanged'
  const record = { ...recordOrEmpty(facts, now), digest, sequence }
  return {
    record: isNew ? afterReplacement(facts, { ...record, objects, publishedAt: now }, outcome) : record,
    unread: undefined,
    objects,
    keeps: true,
    intact: true,
    drift: undefined,
    uncompared: undefined,
    rejection: undefined,
    desired: { digest, objects },
    passed: { certificates, emptied: warnings.flatMap(({ emptied }) => emptied ?? []), unproven },
  }
}

/** A publication ends an operator's words, and brings a directory back that was let go. */
function afterReplacement(
  { configuration }: DirectoryFacts,
  { hold: _hold, pin: _pin, movedTo: _movedTo, letGo: _letGo, ...record }: RecordFacts,
  { change, hooks }: PublishedOutcome,
): RecordFacts {
  const hasPast = change === 'replaced' && configuration.history.keep > 0
  // The next comparison says it exactly.
  return { ...(hasPast && { pastSince: record.publishedAt }), ...record, pendingHooks: hooks }
}

function withoutMove({ relocation: _from, movedTo: _to, ...rest }: RecordFacts): RecordFacts {
  return rest
}

/** A comparison follows, unless the old path is gone. */
function afterMove(facts: DirectoryFacts, { result }: Moving, now: Date): Changes {
  if (result === undefined || result.outcome === 'unchanged') return { drift: undefined }
  const { digest, sequence } = result
  return { drift: undefined, record: { ...recordOrEmpty(facts, now), digest, sequence }, unread: undefined }
}

/** What the agent knows of a directory before its first event. @internal */
export function unknownFacts(configuration: DirectoryConfiguration): DirectoryFacts {
  return {
    configuration,
    record: undefined,
    unread: {},
    objects: [],
    keeps: false,
    intact: false,
    drift: undefined,
    uncompared: undefined,
    rejection: undefined,
    desired: undefined,
    recordedAt: -Infinity,
    news: undefined,
    passed: { certificates: [], emptied: [], unproven: undefined },
    confirmedAt: undefined,
    published: undefined,
    fresh: undefined,
    behind: undefined,
    notCurrentSince: undefined,
    missingSince: undefined,
  }
}

/** The newest objects that the source knows of are on the disk. */
export function isCurrent({ published, behind }: Pick<DirectoryFacts, 'published' | 'behind'>): boolean {
  return published?.status === 'True' && behind === undefined
}

/**
 * Since when the directory is not current; undefined while it is, or an operator keeps it as it is and it is there. A restart of the agent
 * does not begin this time anew.
 */
export function failingSince({ published, missingSince, notCurrentSince }: DirectoryFacts): Date | undefined {
  return published?.reason === 'Held' || published?.reason === 'RolledBack' ? missingSince : notCurrentSince
}

/** When an earlier content has been beside it for as long as it may, in milliseconds since the epoch. */
function pastEnd({ record, configuration }: DirectoryFacts): number | undefined {
  const { maxAge } = configuration.history
  return maxAge === null || record?.pastSince === undefined ? undefined : record.pastSince.getTime() + maxAge
}

export function isPastOver(facts: DirectoryFacts): boolean {
  return Date.now() >= (pastEnd(facts) ?? Infinity)
}

/** The record names other versions of its objects than the newest that are known. */
export function isBehindVersions({ record, objects }: DirectoryFacts): boolean {
  const newest = new Map(objects.map((object) => [objectName(object), object]))
  return (record?.objects ?? []).some((object) => !isSameVersion(newest.get(objectName(object)) ?? object, object))
}

export function isSameVersion({ uid, resourceVersion }: ObjectVersion, other: ObjectVersion | undefined): boolean {
  return uid === other?.uid && resourceVersion === other.resourceVersion
}

/** When versions that are held back may be recorded, in milliseconds since the epoch; undefined: there are none. */
function recordingDue(facts: DirectoryFacts): number | undefined {
  return isBehindVersions(facts) ? Date.now() + facts.recordedAt + recordingInterval - performance.now() : undefined
}

/**
 * When the next of its timed words ends, in milliseconds since the epoch: a hold, a pin, the stay of an earlier content, the time for which
 * versions are held back. It may have ended a moment ago, while a pass still found it in force.
 */
export function nextEnd(facts: DirectoryFacts): number | undefined {
  const { record } = facts
  const earliest = Date.now() - overdue
  // The next comparison handles an end that lies further back.
  const ends = [record?.hold?.until, record?.pin?.until, pastEnd(facts), recordingDue(facts)].filter(
    (end) => typeof end === 'number' && end > earliest,
  )
  return ends.length === 0 ? undefined : Math.min(...(ends as number[]))
}

/** The agent's memory of one configured directory. `happened` is the only way to change it. */
export class DirectoryState {
  #facts: DirectoryFacts
  #tenure = new AbortController()

  /** @param reconfigured called when it is configured in another way */
  constructor(
    configuration: DirectoryConfiguration,
    private readonly reconfigured: () => void = () => undefined,
  ) {
    this.#facts = unknownFacts(configuration)
  }

  get facts(): DirectoryFacts {
    return this.#facts
  }

  happened(event: DirectoryEvent, now = new Date()): void {
    this.#facts = next(this.#facts, event, now)
    if (event.kind !== 'configured') return
    this.end()
    this.#tenure = new AbortController()
    this.reconfigured()
  }

  /** Aborted once it is dropped, or configured in another way: what goes on for it by the present configuration ends then. */
  get ended(): AbortSignal {
    return this.#tenure.signal
  }

  end(): void {
    this.#tenure.abort()
  }

  get configuration(): DirectoryConfiguration {
    return this.#facts.configuration
  }

  get path(): string {
    return this.configuration.path
  }

  /** Names of its operations: keys of the work queues, and the same in logs. */
  get publishOperation(): string {
    return publishOperationOf(this.path)
  }

  get hooksOperation(): string {
    return hooksOperationOf(this.path)
  }
}

/** The directories that the agent keeps, found by path, by operation, and by the objects that they need. */
export class DirectoryStates {
  readonly #byOperation = new Map<string, DirectoryState>()
  /** What each directory is configured to need, until one comes, goes, or is configured in another way. */
  #needed: { readonly byName: ReadonlyMap<string, DirectoryState[]>; readonly selecting: DirectoryState[] } | undefined;

  [Symbol.iterator](): IterableIterator<DirectoryState> {
    return this.#byOperation.values()
  }

  add(configuration: DirectoryConfiguration): DirectoryState {
    const state = new DirectoryState(configuration, () => (this.#needed = undefined))
    this.#byOperation.set(state.publishOperation, state)
    this.#needed = undefined
    return state
  }

  byPath(path: string): DirectoryState | undefined {
    return this.byOperation(publishOperationOf(path))
  }

  byOperation(operation: string): DirectoryState | undefined {
    return this.#byOperation.get(operation)
  }

  byHooksOperation(operation: string): DirectoryState | undefined {
    return this.byPath(operation.slice(hooksOperationOf('').length))
  }

  remove(path: string): void {
    this.byPath(path)?.end()
    this.#byOperation.delete(publishOperationOf(path))
    this.#needed = undefined
  }

  /** The old path of the directory at this one, during the move. */
  following(path: string): DirectoryState | undefined {
    return [...this].find(({ configuration }) => configuration.follows === path)
  }

  /** The directories that need this object, or this selection, by what their selections match now. */
  needing(reference: ObjectReference, latest: Source['latest']): DirectoryState[] {
    this.#needed ??= neededBy(this)
    const { byName, selecting } = this.#needed
    const named = byName.get(objectName(reference)) ?? []
    const selected = selecting.filter(
      (state) => !named.includes(state) && needs(expand(state.configuration, latest), reference),
    )
    return [...named, ...selected]
  }
}

/** Each report of a source looks up the directories that need its object, among hundreds: most need the objects that they name. */
function neededBy(states: Iterable<DirectoryState>) {
  const byName = new Map<string, DirectoryState[]>()
  const selecting: DirectoryState[] = []
  for (const state of states) {
    const { configuration } = state
    // What follows another path gets its content from there.
    if (configuration.follows !== undefined) continue
    if (selectionsOf(configuration).length > 0) selecting.push(state)
    for (const reference of referencesOf(configuration)) {
      const name = objectName(reference)
      byName.set(name, [...(byName.get(name) ?? []), state])
    }
  }
  return { byName, selecting }
}

/** Whether the directory holds something that is not optional: only such a one counts for readiness, and no old path. */
export function hasRequired(configuration: DirectoryConfiguration): boolean {
  return configuration.follows === undefined && configuration.contents.some(({ optional }) => !optional)
}

function publishOperationOf(path: string): string {
  return `publish ${path}`
}

function hooksOperationOf(path: string): string {
  return `afterPublish ${path}`
}
