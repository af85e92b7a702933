import { objectName } from '../object-name.js'
import { expand, needs, referencesOf, selectionsOf } from '../config/references.js'
import type { DirectoryConfiguration } from '../config/types.js'
import type { CertificateDate } from '../directories/types.js'
import type { Hold, Pin, Publication, Relocation } from '../durable/types.js'
import { failureFrom, messageOf } from '../errors.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import type { ObjectReference, Source } from '../objects/types.js'
import type { Reason } from '../reasons.js'

/** An object as status and logs name it. */
export interface PublishedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

/**
 * What the agent says of a directory, in the shape of Kubernetes' own conditions. `Published`: the disk holds the newest objects that
 * the source has reported (`Unknown`: they are visible, but may not survive a power cut). `Fresh`: the source has confirmed that they
 * are the newest.
 */
export interface Condition {
  readonly type: 'Published' | 'Fresh'
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: Reason
  readonly message: string
  /** RFC 3339; when `status` last changed. */
  readonly lastTransitionTime: string
}

/** A condition without its history. */
export type ConditionState = Pick<Condition, 'status' | 'reason' | 'message'>

/** The condition in a new state: its transition time changes with its status only, as everywhere in Kubernetes. */
function transition(
  type: Condition['type'],
  previous: Condition | undefined,
  { status, reason, message }: ConditionState,
  now: Date,
): Condition {
  if (previous?.status !== status) return { type, status, reason, message, lastTransitionTime: now.toISOString() }
  if (previous.reason === reason && previous.message === message) return previous
  return { type, status, reason, message, lastTransitionTime: previous.lastTransitionTime }
}

/** Content that must not be published, and why. */
export interface Rejection {
  readonly digest: string
  readonly error: Error
}

/** A content, and what gave it. */
interface DesiredObjects {
  readonly digest: string
  readonly objects: readonly PublishedObject[]
}

/** What an earlier run has left in its status. */
interface EarlierStatus {
  readonly conditions: readonly Condition[]
  readonly confirmedAt: string | null
  readonly digest?: string | null
  readonly objects?: readonly PublishedObject[]
}

/** Milliseconds after its end in which a hold, pin or age limit still sets the timer. */
const overdue = 10_000

/**
 * The agent's memory of one configured directory. Never content: it reads the present one from the disk, and the desired one from the
 * source.
 */
export class DirectoryState {
  #configuration: DirectoryConfiguration
  /** Its way to another path, while a pass is at it. */
  #move: AbortController | undefined
  /** The disk has been compared with the record since the start. */
  compared = false
  /** This agent has published to it since the start, or found it as it should be. */
  keeps = false
  /** The disk holds what the record says, known to be durable. */
  intact = false
  /** What differed from the record at the last comparison; undefined: nothing. */
  drift: string | undefined
  /** The condition of a last comparison that could not read the disk. The findings of an earlier comparison stay beside it. */
  uncompared: ConditionState | undefined
  /** An operator holds the directory, by its record: the agent publishes nothing. */
  hold: Hold | undefined
  /** An operator has rolled it back, by its record. */
  pin: Pin | undefined
  /** Old content is beside it, which a process used at the last scan. */
  retired = false
  /** When the oldest of its earlier contents was replaced; undefined: there are none. */
  pastSince: Date | undefined
  /** When it left the configuration, where it has changed since: that is no drift, and it comes back by an adoption. */
  letGo: Date | undefined
  /** Where its content was before, and where it goes, by its record. */
  relocation: Relocation | undefined
  movedTo: string | undefined
  /** What `beforePublish` has rejected last; undefined once something is published. */
  rejection: Rejection | undefined
  digest: string | undefined
  /** By which logs name that content. */
  sequence = 0
  /**
   * The desired content, as the last successful pass found or made it: the agent compares the disk with this, beside any record. undefined:
   * no source has reported it yet, and the record decides.
   */
  desired: DesiredObjects | undefined
  /** The record is of newer versions than those: the same source told them to another program first, as `holdfast sync`. */
  isAhead = false
  publishedAt: Date | undefined
  objects: readonly PublishedObject[] = []
  /** The objects in the versions that the record on the disk names: after a restart, no older ones are accepted. */
  recordedObjects: readonly PublishedObject[] = []
  /** When `recordedObjects` were last brought up by themselves, by performance.now(). */
  recordedAt = -Infinity
  /** When newer versions that are held back may be recorded, in milliseconds since the epoch; undefined: there are none. */
  recordDue: number | undefined
  /** What an earlier run knew of that content: it may have been killed before it recorded all of it. */
  #earlier: Pick<EarlierStatus, 'digest' | 'objects'> = {}
  /** Grows each time that the source reports something about one of its objects. */
  reports = 0
  /** `reports` when the agent took the published content from the source: the source has reported more since where they differ. */
  publishedReports = 0
  /** Grows with each publication: work that started for an earlier one knows by it that it is out of date. */
  publications = 0
  /** Keys of hooks that are still to run for `digest`. */
  pendingHooks: readonly string[] = []
  certificates: readonly CertificateDate[] = []
  /** Published files that held certificates before, and are empty. */
  emptied: readonly string[] = []
  /** Its file system proves no durability, as the last successful pass found; undefined: there was none. */
  unproven: boolean | undefined
  /** When the source last confirmed the published versions as the newest. */
  confirmedAt: Date | undefined
  published: Condition | undefined
  fresh: Condition | undefined
  #notCurrentSince: Date | undefined
  #behind: string | undefined
  /** The directory, which was published, is gone from the disk. */
  #missingSince: Date | undefined

  /** @param reconfigured called when it is configured in another way */
  constructor(
    configuration: DirectoryConfiguration,
    private readonly reconfigured: () => void = () => undefined,
  ) {
    this.#configuration = configuration
  }

  get configuration(): DirectoryConfiguration {
    return this.#configuration
  }

  set configuration(configuration: DirectoryConfiguration) {
    this.#configuration = configuration
    this.stopMoving()
    this.reconfigured()
  }

  /** `takenBack`: the directory was dropped, or is configured in another way. */
  async whileMoving<T>(move: (takenBack: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController()
    this.#move = controller
    try {
      return await move(controller.signal)
    } finally {
      this.#move = undefined
    }
  }

  /** Nothing of it goes any more, if it has not gone yet. */
  stopMoving(): void {
    this.#move?.abort()
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

  /** What a record and the disk say, after a comparison; undefined: there is no record. */
  observe(publication: Publication | undefined): void {
    const recorded = (publication?.objects ?? []).map(withoutPaths)
    // For the same content, newer versions may be known than were recorded yet.
    if (!this.compared || this.digest !== publication?.digest) this.objects = recorded
    const { digest, objects = [] } = this.#earlier
    if (!this.compared && digest === publication?.digest) this.objects = newestOf(recorded, objects)
    this.recordedObjects = recorded
    this.compared = true
    this.uncompared = undefined
    // A publication of this process has been dated already, some milliseconds apart: it is no news for a report to the cluster.
    const isDated = publication?.sequence === this.sequence && publication.digest === this.digest
    if (!isDated || this.publishedAt === undefined) this.publishedAt = publication?.publishedAt
    this.intact = publication !== undefined && publication.settled && publication.differences.length === 0
    const isMissing = publication !== undefined && publication.actual === undefined
    this.#missingSince = isMissing ? (this.#missingSince ?? new Date()) : undefined
    this.digest = publication?.digest
    this.sequence = publication?.sequence ?? 0
    this.pendingHooks = publication?.pendingHooks ?? []
    this.hold = publication?.hold
    this.pin = publication?.pin
    this.retired = publication?.retired === true
    this.pastSince = publication?.pastSince
    this.letGo = this.intact ? undefined : publication?.letGo
    this.relocation = publication?.relocation
    this.movedTo = publication?.movedTo
  }

  /** A comparison could not read the disk: the disk's content is unknown. */
  doubt(error: unknown): void {
    const message = `the disk could not be compared with what was published: ${messageOf(error)}`
    this.uncompared = { status: 'Unknown', reason: failureFrom(error).reason, message }
    this.intact = false
  }

  /** The time of an earlier content is over. */
  get isPastOver(): boolean {
    const { maxAge } = this.configuration.history
    return maxAge !== null && this.pastSince !== undefined && Date.now() - this.pastSince.getTime() >= maxAge
  }

  /**
   * When the next of its timed words ends, in milliseconds since the epoch: a hold, a pin, the stay of an earlier content, the time for which
   * versions are held back. It may have ended a moment ago, while a pass still found it in force.
   */
  get nextEnd(): number | undefined {
    const { maxAge } = this.configuration.history
    const past = maxAge === null || this.pastSince === undefined ? undefined : this.pastSince.getTime() + maxAge
    const earliest = Date.now() - overdue
    // The next comparison handles an end that lies further back.
    const ends = [this.hold?.until, this.pin?.until, past, this.recordDue].filter(
      (end) => typeof end === 'number' && end > earliest,
    )
    return ends.length === 0 ? undefined : Math.min(...(ends as number[]))
  }

  /** What the last run said: where it still holds, conditions keep their transition times. */
  restore({ conditions, confirmedAt, digest, objects }: EarlierStatus): void {
    this.#earlier = { ...(digest !== undefined && { digest }), ...(objects && { objects }) }
    this.published = conditions.find(({ type }) => type === 'Published')
    const since = this.published && !this.isCurrent ? new Date(this.published.lastTransitionTime) : undefined
    this.#notCurrentSince = since && !Number.isNaN(since.getTime()) ? since : undefined
    this.fresh = conditions.find(({ type }) => type === 'Fresh')
    const date = new Date(confirmedAt ?? NaN)
    this.confirmedAt = Number.isNaN(date.getTime()) ? undefined : date
  }

  /** The newest objects that the source knows of are on the disk. */
  get isCurrent(): boolean {
    return this.published?.status === 'True' && this.#behind === undefined
  }

  /** An object of which the source was told a newer version, which it has yet to read. */
  get behind(): string | undefined {
    return this.#behind
  }

  setBehind(object: string | undefined, now: Date): void {
    this.#behind = object
    this.#noteCurrent(now)
  }

  #noteCurrent(now: Date): void {
    this.#notCurrentSince = this.isCurrent ? undefined : (this.#notCurrentSince ?? now)
  }

  /**
   * Since when the directory is not current; undefined while it is, or an operator keeps it as it is and it is there. A restart of the agent
   * does not begin this time anew.
   */
  get failingSince(): Date | undefined {
    const reason = this.published?.reason
    if (reason === 'Held' || reason === 'RolledBack') return this.#missingSince
    return this.isCurrent ? undefined : this.#notCurrentSince
  }

  /** Answers whether the condition is another one than before. */
  setPublished(state: ConditionState, now: Date): boolean {
    const previous = this.published
    this.published = transition('Published', previous, state, now)
    this.#noteCurrent(now)
    return previous !== this.published
  }

  setFresh(state: ConditionState, now: Date): boolean {
    const previous = this.fresh
    this.fresh = transition('Fresh', previous, state, now)
    return previous !== this.fresh
  }
}

/** Each of these objects in the newest version that either list has of the same uid. Where versions have no order, `later` has the newest. */
function newestOf(objects: readonly PublishedObject[], later: readonly PublishedObject[]): readonly PublishedObject[] {
  const known = new Map(later.map((object) => [objectName(object), object]))
  return objects.map((object) => {
    const other = known.get(objectName(object))
    if (other?.uid !== object.uid) return object
    return (compareResourceVersions(other.resourceVersion, object.resourceVersion) ?? 1) > 0
      ? withoutPaths(other)
      : object
  })
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
    this.byPath(path)?.stopMoving()
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

function publishOperationOf(path: string): string {
  return `publish ${path}`
}

function hooksOperationOf(path: string): string {
  return `afterPublish ${path}`
}

/** Only what status and logs show: a record's list of files would be held in memory for nothing. */
export function withoutPaths(object: PublishedObject): PublishedObject {
  const { kind, namespace, name, uid, resourceVersion } = object
  return { kind, namespace, name, uid, resourceVersion }
}

/** Whether the directory holds something that is not optional: only such a one counts for readiness, and no old path. */
export function hasRequired(configuration: DirectoryConfiguration): boolean {
  return configuration.follows === undefined && configuration.contents.some(({ optional }) => !optional)
}
