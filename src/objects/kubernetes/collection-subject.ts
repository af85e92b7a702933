/**
 * The Secrets or the ConfigMaps of one namespace in one watch, which brings their metadata only: a followed object is read by name once
 * its version has changed. The subject keeps nothing of the others:
 * it matches their labels with the followed selectors as they come.
 */
import { sleep } from '../../deadline.js'
import { objectName } from '../../message-text.js'
import { Backoff } from '../../backoff.js'
import { inParallel } from '../../parallel.js'
import { AbortableSemaphore } from '../../abortable-semaphore.js'
import type { Labels } from '../../label-selector.js'
import { hasObject } from '../same-state.js'
import { storedSize, type ObservedVersion, type StoredObject } from '../stored-object.js'
import type { ObjectReference } from '../types.js'
import { ApiError, brokenRequest, field, isAbsent, refusedRequest } from '../../kubernetes/reads/api-error.js'
import { listPages } from '../../kubernetes/reads/list-pages.js'
import {
  itemsOf,
  metadataName,
  observeAbsence,
  observeObject,
  resourceVersionOf,
} from '../../kubernetes/reads/observed-version.js'
import { readSelected, type ReadContext } from './read-selected.js'
import {
  readFresh,
  isBelow,
  isKnown,
  sayFailed,
  takeFresh,
  type Ask,
  type EventType,
  type WatchEvents,
  type WatchFailure,
  type WatchSubject,
} from './watch-subject.js'
import {
  metadataOnly,
  objectTarget,
  targetPath,
  watchQuery,
  type ApiTarget,
  type Query,
} from '../../kubernetes/reads/requests.js'
import { objectLabels, Selections } from '../../kubernetes/reads/selections.js'

/** Objects on one page of a list; client-go's pager has the same. */
const pageSize = 500

/** Parallel reads by name. */
const readAtATime = 4

/** A list reads at least so many objects of a selector together, where half of its matches are unread. */
const manyReads = 16

/** An object of which a list or an event has told a version that is not read yet. */
interface Unread {
  /** The newest version that was told. */
  told: string | undefined
  readonly backoff: Backoff
  /** Milliseconds before its next read; 0: it has not failed. */
  delay: number
  /** performance.now() of its first failure in a row. */
  failingSince: number | undefined
}

export class CollectionSubject implements WatchSubject {
  readonly target: ApiTarget
  readonly path: string
  readonly accept = metadataOnly.object
  /** A list has pages, and a stream has none: the initial events of 5,000 objects come at once. */
  readonly streams = false
  /** What a stream leaves unread is read by the next one. */
  readonly #unread = new Map<StoredObject, Unread>()
  readonly #reads = new AbortableSemaphore(readAtATime)
  /** Reads one more object, beside the stream that is open. */
  #readOn: ((stored: StoredObject) => void) | undefined
  readonly #selections: Selections
  /** Objects followed since the selections began to report their matches; undefined: they are not reporting. */
  #newcomers: StoredObject[] | undefined
  /** The selections hold what all of the collection matches; else a list is under way, or has failed. */
  #isListed = false

  /** @param followed those of its objects that are followed now, and for good the selections of them */
  constructor(
    { kind, namespace }: Pick<ObjectReference, 'kind' | 'namespace'>,
    private readonly followed: ReadonlyMap<string, StoredObject>,
    private readonly context: ReadContext,
  ) {
    this.target = { ...objectTarget({ kind, namespace, name: '' }), name: undefined }
    this.path = targetPath(this.target)
    this.#selections = new Selections([...followed.values()].filter(isSelection))
  }

  /** Whether it reads one more object by itself, since a selection has just reported it. All else takes a list. */
  takes(stored: StoredObject): boolean {
    if (this.#newcomers === undefined || isSelection(stored)) return false
    this.#newcomers.push(stored)
    return true
  }

  /** Takes the labels of an object that another reader has read by name; answers whether the matches changed, and reports them then. */
  takeLabels({ reference }: StoredObject, { labels }: ObservedVersion): boolean {
    if (!this.#isListed || !this.#selections.set(reference.name, labels)) return false
    // The objects that this adds are not read here: the source lists again for them.
    this.#selections.report()
    return true
  }

  readonly objects = (): readonly StoredObject[] => [...this.followed.values()]

  query(from: string | undefined, seconds: number): Query {
    return watchQuery({}, from ?? '', seconds)
  }

  async list(ask: Ask): Promise<string | undefined> {
    this.#readOn = undefined
    const found = new Map<string, unknown>()
    let version: string | undefined
    this.#isListed = false
    this.#selections.clear()
    const accept = metadataOnly.list
    const get = (page: Query) => this.context.client.get(this.path, page, { ...ask(), verb: 'list', accept })
    for await (const answer of listPages(get, { limit: pageSize })) {
      if (answer.status !== 200) throw refusedRequest(this.target, 'list', answer)
      for (const item of itemsOf(answer.body, this.target)) {
        const name = metadataName(item)
        if (name === undefined) continue
        this.#selections.set(name, objectLabels(item))
        if (this.followed.has(name)) found.set(name, item)
      }
      version ??= resourceVersionOf(answer.body)
    }
    const before = this.#followedObjects()
    const newcomers = this.#selections.any ? await this.#select(before, found, version, ask) : []
    for (const stored of before.filter((one) => this.#follows(one))) {
      const item = found.get(stored.reference.name)
      if (item === undefined) this.#gone(stored, version)
      else if (this.#isKnown(stored, item)) this.#confirm(stored)
      else this.#tell(stored, resourceVersionOf(item))
    }
    for (const stored of this.#unread.keys()) if (!this.#follows(stored)) this.#unread.delete(stored)
    for (const stored of newcomers) this.#tell(stored, resourceVersionOf(found.get(stored.reference.name)))
    await this.#readTogether(ask)
    const tried = new Set<StoredObject>()
    const untried = (): StoredObject[] => [...this.#unread.keys()].filter((stored) => !tried.has(stored))
    // A read may show that the object matches another selector, whose objects are followed then.
    for (let due = untried(); due.length > 0; due = untried()) {
      await inParallel(due, readAtATime, async (stored) => {
        tried.add(stored)
        await this.#read(stored, ask)
      })
    }
    return version
  }

  /** Reads the unread objects of a selection in a list, without a request for each. One that cannot be read may fail all of them. */
  async #readTogether(ask: Ask): Promise<void> {
    for (const { selector, names } of this.#selections.matches) {
      const unread = [...this.#unread.keys()].filter(({ reference }) => names.has(reference.name))
      if (unread.length < manyReads || unread.length < names.size / 2) continue
      const wanted = new Map(unread.map((stored) => [stored.reference.name, stored]))
      const take = (object: unknown): Promise<number> => {
        const stored = wanted.get(metadataName(object) ?? '')
        if (stored === undefined || !this.#unread.has(stored)) return Promise.resolve(0)
        const observed = observeObject(stored.reference, object)
        this.#accepts(stored, observed)
        if (stored.offer(observed) === 'accepted') this.#caughtUp(stored)
        const { observation } = observed
        return Promise.resolve(observation.state === 'present' ? storedSize(observation.object.data) : 0)
      }
      try {
        await readSelected(this.context, this, selector, ask, take)
      } catch (error) {
        if (!isOfObject(error)) throw error
      }
    }
  }

  /** Events are taken as they come, and the objects are read beside them: what is known to be newer must not wait for a read. */
  events(ask: Ask): WatchEvents {
    const reading = new Set<StoredObject>()
    const readOn = (stored: StoredObject): void => {
      if (reading.has(stored)) return
      reading.add(stored)
      void this.#readUntilKnown(stored, ask).finally(() => reading.delete(stored))
    }
    this.#readOn = readOn
    for (const stored of this.#unread.keys()) readOn(stored)
    return {
      take: (type, object) => {
        this.#take(type, object)
        return Promise.resolve()
      },
      complete: () => Promise.resolve(),
    }
  }

  failed(failure: WatchFailure): void {
    sayFailed(this, failure)
  }

  #tell(stored: StoredObject, version: string | undefined): void {
    const { timing, random } = this.context
    const unread = this.#unread.get(stored)
    if (unread) unread.told = version
    else {
      const backoff = new Backoff(timing, random)
      this.#unread.set(stored, { told: version, backoff, delay: 0, failingSince: undefined })
    }
    stored.tell()
    this.#readOn?.(stored)
  }

  /** The known version is the newest that was told. */
  #caughtUp(stored: StoredObject): void {
    this.#unread.delete(stored)
    stored.caughtUp()
  }

  #confirm(stored: StoredObject): void {
    this.#caughtUp(stored)
    stored.current()
  }

  /**
   * Reports what matches as of a list, before any of its objects is: an object that has lost its label must not be published again.
   * Answers the objects followed since. The known version of an object may be newer than a list, or come from a history that is no more:
   * then a fresh read decides.
   */
  async #select(
    before: readonly StoredObject[],
    found: ReadonlyMap<string, unknown>,
    version: string | undefined,
    ask: Ask,
  ): Promise<StoredObject[]> {
    for (const stored of before) {
      const { name } = stored.reference
      const item = found.get(name)
      const told = item === undefined ? version : resourceVersionOf(item)
      if (!stored.isAbove(told)) continue
      this.#tell(stored, told)
      if (!(await this.#read(stored, ask))) this.#selections.set(name, await this.#readLabels(name, ask))
    }
    this.#isListed = true
    return this.#report()
  }

  #report(): StoredObject[] {
    const newcomers: StoredObject[] = []
    this.#newcomers = newcomers
    this.#selections.report()
    this.#newcomers = undefined
    return newcomers
  }

  /** undefined: it does not exist. */
  async #readLabels(name: string, ask: Ask): Promise<Labels | undefined> {
    const target = { ...this.target, name }
    const answer = await this.context.client.get(targetPath(target), {}, { ...ask(), accept: this.accept })
    if (answer.status === 200) return objectLabels(answer.body)
    if (isAbsent(answer, name)) return undefined
    throw refusedRequest(target, 'get', answer)
  }

  #followedObjects(): StoredObject[] {
    return this.objects().filter((stored) => !isSelection(stored))
  }

  #follows(stored: StoredObject): boolean {
    return this.followed.get(stored.reference.name) === stored
  }

  #take(type: EventType, object: unknown): void {
    const name = metadataName(object) ?? ''
    const version = resourceVersionOf(object)
    if (this.#selections.any) {
      const before = this.followed.get(name)
      if (before?.isAbove(version)) {
        // Its labels may be out of date, too.
        this.#tell(before, version)
        return
      }
      const changed = this.#selections.set(name, type === 'DELETED' ? undefined : objectLabels(object))
      for (const stored of changed ? this.#report() : []) this.#tell(stored, undefined)
    }
    const stored = this.followed.get(name)
    if (stored === undefined) return
    if (type === 'DELETED') this.#gone(stored, version)
    else if (this.#isKnown(stored, object)) this.#confirm(stored)
    // A read by name may have passed the version of this event already: then the event brings nothing new.
    else if (!this.#isOlder(stored, object, version)) this.#tell(stored, version)
  }

  #isKnown({ latest }: StoredObject, item: unknown): boolean {
    if (latest === undefined || !hasObject(latest)) return false
    // Another history may have reached the same version with another object.
    const sameObject = field(field(item, 'metadata'), 'uid') === latest.object.uid
    return sameObject && latest.object.resourceVersion === resourceVersionOf(item)
  }

  #isOlder({ latest }: StoredObject, item: unknown, version: string | undefined): boolean {
    if (latest === undefined || !hasObject(latest) || version === undefined) return false
    const sameObject = field(field(item, 'metadata'), 'uid') === latest.object.uid
    return sameObject && isBelow(version, latest.object.resourceVersion)
  }

  #gone(stored: StoredObject, version: string | undefined): void {
    if (stored.offer(observeAbsence(version)) === 'stale') this.#tell(stored, version)
    else this.#caughtUp(stored)
  }

  /** One object that cannot be read holds up none of the others: answers whether this one could be. */
  async #read(stored: StoredObject, ask: Ask): Promise<boolean> {
    const accepts = (fresh: ObservedVersion) => this.#accepts(stored, fresh)
    try {
      for (;;) {
        const told = this.#unread.get(stored)?.told
        const { resourceVersion } = await takeFresh(
          stored,
          () => readFresh(this.context.client, stored.reference, ask()),
          accepts,
        )
        if (this.#unread.get(stored)?.told === told || !this.#isBelowTold(stored, resourceVersion)) break
      }
      this.#caughtUp(stored)
      return true
    } catch (error) {
      if (!isOfObject(error)) throw error
      this.#refuse(stored, error)
      return false
    }
  }

  /** Whether a newer version than this one was told. */
  #isBelowTold(stored: StoredObject, version: string | undefined): boolean {
    const told = this.#unread.get(stored)?.told
    return told !== undefined && version !== undefined && isBelow(version, told)
  }

  /** Until the stream of these options ends. Each failure keeps this object waiting, and no other. */
  async #readUntilKnown(stored: StoredObject, ask: Ask): Promise<void> {
    const { signal } = ask()
    if (signal === undefined) return
    for (let unread = this.#unread.get(stored); unread !== undefined; unread = this.#unread.get(stored)) {
      try {
        if (unread.delay > 0) await sleep(unread.delay, { signal })
        await this.#reads.enter(signal)
        try {
          if (!this.#follows(stored)) this.#unread.delete(stored)
          else await this.#read(stored, ask)
        } finally {
          this.#reads.leave()
        }
      } catch (error) {
        if (signal.aborted) return
        this.#refuse(stored, brokenRequest(this.target, error))
      }
    }
  }

  /**
   * A read by name may be newer than the list or the event that led to it: the object may have lost its label, and is not followed any
   * more once that is reported. Until a list can be reported, content that no selector matches stays out; a content that names the
   * object has it read again. Answers whether the answer is taken.
   */
  #accepts(stored: StoredObject, { labels, resourceVersion }: ObservedVersion): boolean {
    if (!this.#selections.any) return true
    const { name } = stored.reference
    // An event meanwhile has told of its newer labels.
    if (this.#isBelowTold(stored, resourceVersion)) return this.#selections.has(name)
    const changed = this.#selections.set(name, labels)
    if (!this.#isListed) return labels === undefined || this.#selections.has(name)
    for (const newcomer of changed ? this.#report() : []) this.#tell(newcomer, undefined)
    return true
  }

  get #isFailing(): boolean {
    return [...this.#unread.values()].some(({ failingSince }) => failingSince !== undefined)
  }

  #refuse(stored: StoredObject, error: ApiError): void {
    const { message, observation, reason } = error
    const { retryAfter = 0 } = error.details
    const { log, timing } = this.context
    const unread = this.#unread.get(stored)
    if (unread === undefined) return
    const isNews = unread.failingSince === undefined && (isOfObject(error) || !this.#isFailing)
    unread.failingSince ??= performance.now()
    unread.delay = Math.max(unread.backoff.next(reason), Math.min(retryAfter, timing.longestRetryAfter))
    const lasting = reason === 'denied' && performance.now() - unread.failingSince >= timing.denialGrace
    const kept = isKnown(stored.latest) && !lasting ? '; holdfast keeps the version that it knows' : ''
    log[isNews ? 'warn' : 'debug']({ object: objectName(stored.reference) }, `${message}${kept}`)
    if (kept === '') stored.say(observation)
  }
}

/** The API server has answered, and so for this object: the others may fare better. */
function isOfObject(error: unknown): error is ApiError {
  return error instanceof ApiError && ['denied', 'protocol', 'server-error'].includes(error.reason)
}

function isSelection({ reference }: StoredObject): boolean {
  return reference.selector !== undefined
}
