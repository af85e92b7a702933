/**
 * The Secrets or the ConfigMaps of one namespace in one watch, which brings their metadata only: a followed object is read by name once
 * its version has changed. The subject keeps nothing of the others:
 * it matches their labels with the followed selectors as they come.
 */
import { objectName } from '../../object-name.js'
import { setTimeout as sleep } from 'node:timers/promises'
import { inParallel } from '../../parallel.js'
import type { Labels } from '../../label-selector.js'
import { hasObject } from '../same-state.js'
import { sizeOf, type ObservedVersion, type StoredObject } from '../stored-object.js'
import type { ObjectReference } from '../types.js'
import { ApiError, field, isAbsent, refusedRequest } from '../../kubernetes/reads/api-error.js'
import { listPages } from '../../kubernetes/reads/list-pages.js'
import { itemsOf, observeAbsence, observeObject, resourceVersionOf } from '../../kubernetes/reads/observed-version.js'
import { readSelected, type ReadContext } from './read-selected.js'
import { readFresh } from './reads.js'
import { metadataOnly, objectTarget, pathOf, type ApiTarget, type Query } from '../../kubernetes/reads/requests.js'
import { labelsOf, Selections } from '../../kubernetes/reads/selections.js'
import { isBelow, isKnown, takeFresh, type Ask, type EventType } from './watch-subject.js'
import type { WatchEvents, WatchSubject } from './watch-subject.js'

/** Objects on one page of a list; client-go's pager has the same. */
const pageSize = 500

/** Parallel reads by name. */
const readAtATime = 4

/** A list reads at least so many objects of a selector together, where half of its matches are unread. */
const manyReads = 16

/** Milliseconds after a failed read of an object before the next one. */
const readAgainAfter = 30_000

export class CollectionSubject implements WatchSubject {
  readonly target: ApiTarget
  readonly path: string
  readonly accept = metadataOnly.object
  /** A list has pages, and a stream has none: the initial events of 5,000 objects come at once. */
  readonly streams = false
  /** Objects whose read is refused, each for itself, and since when, by performance.now(). */
  readonly #refused = new Map<StoredObject, number>()
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
    private readonly again = readAgainAfter,
  ) {
    this.target = { ...objectTarget({ kind, namespace, name: '' }), name: undefined }
    this.path = pathOf(this.target)
    this.#selections = new Selections([...followed.values()].filter(isSelection))
  }

  /** Whether it reads one more object by itself, since a selection has just reported it. All else takes a list. */
  takes(stored: StoredObject): boolean {
    if (this.#newcomers === undefined || isSelection(stored)) return false
    this.#newcomers.push(stored)
    return true
  }

  /** Takes the labels of an object that another reader has read by name; answers whether the matches changed, and reports them then. */
  settles({ reference }: StoredObject, { labels }: ObservedVersion): boolean {
    if (!this.#isListed || !this.#selections.set(reference.name, labels)) return false
    // The objects that this adds are not read here: the source lists again for them.
    this.#selections.report()
    return true
  }

  readonly objects = (): readonly StoredObject[] => [...this.followed.values()]

  query(from: string | undefined, seconds: number): Query {
    return { watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: String(seconds), resourceVersion: from ?? '' }
  }

  async list(ask: Ask): Promise<string | undefined> {
    const found = new Map<string, unknown>()
    let version: string | undefined
    this.#isListed = false
    this.#selections.clear()
    const accept = metadataOnly.list
    const get = (page: Query) => this.context.client.get(this.path, page, { ...ask(), verb: 'list', accept })
    for await (const answer of listPages(get, { limit: pageSize })) {
      if (answer.status !== 200) throw refusedRequest(this.target, 'list', answer)
      for (const item of itemsOf(answer.body, this.target)) {
        const name = nameOf(item)
        if (name === undefined) continue
        this.#selections.set(name, labelsOf(item))
        if (this.followed.has(name)) found.set(name, item)
      }
      version ??= resourceVersionOf(answer.body)
    }
    const before = this.#followedObjects()
    const newcomers = this.#selections.any ? await this.#select(before, found, version, ask) : []
    const kept = before.filter((stored) => this.#follows(stored))
    const unread = new Set(newcomers)
    await inParallel(kept, readAtATime, async (stored) => {
      const item = found.get(stored.reference.name)
      if (item === undefined) await this.#gone(stored, version, ask)
      else if (this.#isKnown(stored, item)) stored.current()
      else unread.add(stored)
    })
    await this.#readTogether(unread, ask)
    await inParallel([...unread], readAtATime, async (stored) => {
      await this.#read(stored, ask)
    })
    return version
  }

  /** Reads the unread objects of a selection in a list, without a request for each. */
  async #readTogether(unread: Set<StoredObject>, ask: Ask): Promise<void> {
    for (const { selector, names } of this.#selections.matches) {
      const wanted = new Map(
        [...unread].flatMap((stored) => (names.has(stored.reference.name) ? [[stored.reference.name, stored]] : [])),
      )
      if (wanted.size < manyReads || wanted.size < names.size / 2) continue
      const newcomers: StoredObject[] = []
      await readSelected(this.context, this, selector, ask, async (object) => {
        const stored = wanted.get(nameOf(object) ?? '')
        if (stored === undefined || !unread.delete(stored)) return 0
        const observed = observeObject(stored.reference, object)
        this.#settle(stored, observed, newcomers)
        if (stored.offer(observed) === 'stale') await this.#read(stored, ask)
        const { observation } = observed
        return observation.state === 'present' ? sizeOf(observation.object.data) : 0
      })
      for (const newcomer of newcomers) unread.add(newcomer)
    }
  }

  events(ask: Ask): WatchEvents {
    void this.#readAgain(ask)
    return {
      take: (type, object) => this.#take(type, object, ask),
      complete: () => Promise.resolve(),
    }
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
      if (!stored.isAbove(item === undefined ? version : resourceVersionOf(item))) continue
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
    const answer = await this.context.client.get(pathOf(target), {}, { ...ask(), accept: this.accept })
    if (answer.status === 200) return labelsOf(answer.body)
    if (isAbsent(answer, name)) return undefined
    throw refusedRequest(target, 'get', answer)
  }

  #followedObjects(): StoredObject[] {
    return this.objects().filter((stored) => !isSelection(stored))
  }

  #follows(stored: StoredObject): boolean {
    return this.followed.get(stored.reference.name) === stored
  }

  async #take(type: EventType, object: unknown, ask: Ask): Promise<void> {
    const name = nameOf(object) ?? ''
    const version = resourceVersionOf(object)
    if (this.#selections.any) {
      const isOld = this.followed.get(name)?.isAbove(version) === true
      const labels = type === 'DELETED' ? undefined : labelsOf(object)
      const changed = this.#selections.set(name, isOld ? await this.#readLabels(name, ask) : labels)
      for (const stored of changed ? this.#report() : []) await this.#read(stored, ask)
    }
    const stored = this.followed.get(name)
    if (stored === undefined) return
    if (type === 'DELETED') await this.#gone(stored, version, ask)
    else if (this.#isKnown(stored, object)) stored.current()
    // A read by name may have passed the version of this event already: then the event brings nothing new.
    else if (!this.#isOlder(stored, object, version)) await this.#read(stored, ask)
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

  async #gone(stored: StoredObject, version: string | undefined, ask: Ask): Promise<void> {
    if (stored.offer(observeAbsence(version)) === 'stale') await this.#read(stored, ask)
  }

  /** One object that cannot be read holds up none of the others: answers whether this one could be. */
  async #read(stored: StoredObject, ask: Ask): Promise<boolean> {
    const newcomers: StoredObject[] = []
    const settle = (fresh: ObservedVersion) => this.#settle(stored, fresh, newcomers)
    try {
      await takeFresh(stored, () => readFresh(this.context.client, stored.reference, ask()), settle)
      this.#refused.delete(stored)
    } catch (error) {
      if (!(error instanceof ApiError) || (error.reason !== 'denied' && error.reason !== 'protocol')) throw error
      this.#refuse(stored, error)
      return false
    }
    // It has come to match another selector.
    for (const newcomer of newcomers) await this.#read(newcomer, ask)
    return true
  }

  /**
   * A read by name may be newer than the list or the event that led to it: the object may have lost its label, and is not followed any
   * more once that is reported. Until a list can be reported, content that no selector matches stays out; a content that names the
   * object has it read again. Answers whether the answer is taken.
   */
  #settle({ reference: { name } }: StoredObject, { labels }: ObservedVersion, newcomers: StoredObject[]): boolean {
    if (!this.#selections.any) return true
    const changed = this.#selections.set(name, labels)
    if (!this.#isListed) return labels === undefined || this.#selections.has(name)
    if (changed) newcomers.push(...this.#report())
    return true
  }

  #refuse(stored: StoredObject, { message, observation, reason }: ApiError): void {
    const { log, timing } = this.context
    const isNews = !this.#refused.has(stored)
    const since = this.#refused.get(stored) ?? performance.now()
    this.#refused.set(stored, since)
    const lasting = reason === 'denied' && performance.now() - since >= timing.denialGrace
    const kept = isKnown(stored.latest) && !lasting ? '; holdfast keeps the version that it knows' : ''
    log[isNews ? 'warn' : 'debug']({ object: objectName(stored.reference) }, `${message}${kept}`)
    if (kept === '') stored.say(observation)
  }

  /** Until the stream of these options ends. */
  async #readAgain(ask: Ask): Promise<void> {
    const { signal } = ask()
    while (signal !== undefined) {
      await sleep(this.again, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      for (const stored of [...this.#refused.keys()]) {
        // A server that is away ends the stream, too.
        if (this.#follows(stored)) await this.#read(stored, ask).catch(() => undefined)
        else this.#refused.delete(stored)
      }
    }
  }
}

function isSelection({ reference }: StoredObject): boolean {
  return reference.selector !== undefined
}

function nameOf(object: unknown): string | undefined {
  const name = field(field(object, 'metadata'), 'name')
  return typeof name === 'string' ? name : undefined
}
