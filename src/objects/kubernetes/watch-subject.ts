/** The subject of one watch, and the meaning of its answers: one object, or a collection of which some objects are followed. */
import { listed, objectName } from '../../message-text.js'
import type { Log } from '../../log.js'
import type { ObjectReference, ObservedState } from '../types.js'
import type { ObservedVersion, StoredObject } from '../stored-object.js'
import { isSameState } from '../same-state.js'
import { compareResourceVersions } from '../resource-version.js'
import type { ApiClient, RequestOptions } from '../../kubernetes/connection/client.js'
import {
  observeAbsence,
  observeObject,
  resourceVersionOf,
  observeList,
} from '../../kubernetes/reads/observed-version.js'
import {
  collectionPath,
  describeTarget,
  objectTarget,
  streamingListQuery,
  watchQuery,
  type ApiTarget,
  type Query,
  listQuery,
  targetPath,
} from '../../kubernetes/reads/requests.js'
import { isAbsent, protocolError, refusedRequest, type ApiError } from '../../kubernetes/reads/api-error.js'

/** How often GET and list may say different things: the object was made or deleted between the two. */
const maximumContradictions = 3

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** Options for one more request of the same try. */
export type Ask = () => RequestOptions

export interface WatchSubject {
  /** The listed and watched resource, as errors and rights name it. */
  readonly target: ApiTarget
  /** Of the collection. */
  readonly path: string
  /** The media type that the server answers with; undefined: whole objects. */
  readonly accept: string | undefined
  /** The stored objects that it keeps up to date. */
  readonly objects: () => readonly StoredObject[]
  /** Its initial events may come in the stream. */
  readonly streams: boolean
  /** The query of a stream that goes on after this version, or starts with the initial events. */
  query(from: string | undefined, seconds: number): Query
  /** Reads all there is, and answers as of which version of the collection. */
  list(ask: Ask): Promise<string | undefined>
  /** Reads the events of one stream, which the server has just opened. */
  events(ask: Ask): WatchEvents
  /** Takes a failure, after which the watch starts again. @throws ends the watch */
  failed(failure: WatchFailure): void
}

export interface WatchFailure {
  readonly error: ApiError
  readonly log: Log
  /** `debug`: it belongs to the ordinary course of a watch. */
  readonly level: 'warn' | 'debug'
  /** The first of its kind, for as long as it stays. */
  readonly isNews: boolean
  /** All watches of the source have it. */
  readonly isShared: boolean
  /** A denial that has lasted: a person has to do something about it. */
  readonly isLasting: boolean
}

export interface WatchEvents {
  take(type: EventType, object: unknown): Promise<void>
  /** The initial events have ended with this version; `seen`: there were some. */
  complete(seen: boolean, version: string | undefined): Promise<void>
}

/** One object, by a field selector for its name: a Role that names it allows that. */
export class ObjectSubject implements WatchSubject {
  readonly target: ApiTarget
  readonly path: string
  readonly accept = undefined
  readonly streams = true
  readonly #reference: ObjectReference

  constructor(
    private readonly stored: StoredObject,
    private readonly client: ApiClient,
  ) {
    this.#reference = stored.reference
    this.target = objectTarget(stored.reference)
    this.path = collectionPath(stored.reference)
  }

  readonly objects = (): readonly StoredObject[] => [this.stored]

  query(from: string | undefined, seconds: number): Query {
    return from === undefined
      ? streamingListQuery(this.#reference, seconds)
      : watchQuery(listQuery(this.#reference), from, seconds)
  }

  async list(ask: Ask): Promise<string | undefined> {
    const { observed, resourceVersion } = await fetchList(this.client, this.#reference, ask())
    if (this.stored.offer(observed) === 'stale') await takeFresh(this.stored, () => this.#readFresh(ask))
    return resourceVersion
  }

  events(ask: Ask): WatchEvents {
    return new ObjectEvents(this.stored, () => this.#readFresh(ask))
  }

  failed(failure: WatchFailure): void {
    sayFailed(this, failure)
  }

  #readFresh(ask: Ask): Promise<ObservedVersion> {
    return readFresh(this.client, this.#reference, ask())
  }
}

/** Reads a stream of one object. @internal */
export class ObjectEvents implements WatchEvents {
  /** A fresh read has covered all up to here: the stream's events of earlier versions are old. */
  #readUpTo: string | undefined

  /** @param readFresh asked where an observed version is older than the known one */
  constructor(
    private readonly stored: StoredObject,
    private readonly readFresh: () => Promise<ObservedVersion>,
  ) {}

  async take(type: EventType, object: unknown): Promise<void> {
    const observed = observeObject(this.stored.reference, object)
    // The object's resourceVersion is the deletion's. observeObject has checked by now that it is the right object.
    await this.#offer(type === 'DELETED' ? observeAbsence(observed.resourceVersion) : observed)
  }

  async complete(seen: boolean, version: string | undefined): Promise<void> {
    if (seen) this.stored.current()
    else await this.#offer(observeAbsence(version))
  }

  async #offer(observed: ObservedVersion): Promise<void> {
    const { resourceVersion } = observed
    if (resourceVersion !== undefined && this.#readUpTo !== undefined) {
      // Versions that cannot be compared may be newer.
      if (resourceVersion === this.#readUpTo || isBelow(resourceVersion, this.#readUpTo)) return
    }
    if (this.stored.offer(observed) === 'accepted') return
    const fresh = await takeFresh(this.stored, this.readFresh)
    this.#readUpTo = fresh.resourceVersion
  }
}

/**
 * Takes the answer of a fresh read. Another report of the object meanwhile may be newer than the answer, which must not pass for a
 * rewound history then: this reads it again. `isTaken` judges the answer before the report.
 */
export async function takeFresh(
  stored: StoredObject,
  readFresh: () => Promise<ObservedVersion>,
  isTaken: (fresh: ObservedVersion) => boolean = () => true,
): Promise<ObservedVersion> {
  for (;;) {
    const before = stored.latest
    const fresh = await readFresh()
    const { latest } = stored
    if (latest !== before && !(latest !== undefined && isSameState(before, latest))) continue
    if (isTaken(fresh) && stored.offer(fresh) === 'stale') stored.confirm(fresh)
    return fresh
  }
}

/** Whether a failure leaves the state alone: the object is known. */
export function isKnown(latest: ObservedState | undefined): boolean {
  // An object observed as invalid is known, too.
  return latest !== undefined && (latest.state !== 'unknown' || latest.reason === 'ObjectInvalid')
}

export function describeObjects({ objects, target }: Pick<WatchSubject, 'objects' | 'target'>): string {
  return listed(objects().map(({ reference }) => objectName(reference))) || describeTarget(target)
}

/** The known state of an object stays through every failure, but for a lasting denial. */
export function sayFailed(
  subject: Pick<WatchSubject, 'objects' | 'target'>,
  { error: { message, reason, observation }, log, level, isNews, isShared, isLasting }: WatchFailure,
): void {
  const fields = { object: describeObjects(subject), restart: reason }
  const objects = subject.objects()
  if (!isLasting && objects.every(({ latest }) => isKnown(latest))) {
    log[isNews ? level : 'debug'](fields, `${message}; holdfast keeps the version that it knows`)
    return
  }
  const isRepeated = objects.some(({ latest }) => latest?.state === 'unknown' && latest.reason === observation.reason)
  log[(isShared ? !isNews : isRepeated) ? 'debug' : 'warn'](fields, message)
  for (const stored of objects) if (isLasting || !isKnown(stored.latest)) stored.say(observation)
}

export function isBelow(a: string, b: string): boolean {
  return (compareResourceVersions(a, b) ?? 0) < 0
}

/** The object now, and the version of the collection as of which that is so: a watch goes on from there. */
interface ListRead {
  readonly observed: ObservedVersion
  readonly resourceVersion: string | undefined
}

/** @throws ApiError, ConnectionError */
async function fetchList(client: ApiClient, reference: ObjectReference, options: RequestOptions): Promise<ListRead> {
  const answer = await client.get(collectionPath(reference), listQuery(reference), { ...options, verb: 'list' })
  if (answer.status !== 200) throw refusedRequest(objectTarget(reference), 'list', answer)
  return { observed: observeList(reference, answer.body), resourceVersion: resourceVersionOf(answer.body) }
}

/**
 * Settles whether an observed version older than the known one comes from a lagging cache or from a rewound history. A GET by name
 * is answered by etcd itself, also where the API server answers consistent lists from its cache (KEP-2340).
 * @throws ApiError, ConnectionError
 */
export async function readFresh(
  client: ApiClient,
  reference: ObjectReference,
  options: RequestOptions,
): Promise<ObservedVersion> {
  const target = objectTarget(reference)
  for (let contradictions = 0; contradictions < maximumContradictions; contradictions++) {
    const answer = await client.get(targetPath(target), {}, options)
    if (answer.status === 200) return observeObject(reference, answer.body)
    if (!isAbsent(answer, target.name)) throw refusedRequest(target, 'get', answer)
    // A 404 does not say as of which version it holds: an empty list does.
    const { observed } = await fetchList(client, reference, options)
    if (observed.observation.state === 'absent') return observed
  }
  throw protocolError(reference, "the API server's answers disagree: to GET it is absent, in the list it is present")
}
