/**
 * Secrets and ConfigMaps of the Kubernetes API, one watch for each object that is followed, so that a Role can name
 * them, or one for each namespace and kind.
 *
 * A caller may rely on this: the reported versions of an object never go backwards, but for a history that was rewound (an
 * etcd restored from a backup), which a fresh read has confirmed and which it reports as such; it reports absence only when it is
 * certain; known states stay while the server is away; a denied or broken object does not hold up others.
 */
import { objectName } from '../../message-text.js'
import type { SourceConfiguration } from '../../config/source.js'
import { type Log, silent } from '../../log.js'
import type { ObservableSource } from '../first-answers.js'
import { ContentBudget } from '../content-budget.js'
import { isSameState } from '../same-state.js'
import { ObjectStore } from '../store.js'
import type {
  ObjectReference,
  LoadedState,
  ObjectVersion,
  ObservedState,
  SourceListener,
  DesiredObject,
} from '../types.js'
import type { ApiClient } from '../../kubernetes/connection/client.js'
import { brokenRequest } from '../../kubernetes/reads/api-error.js'
import { readFresh, ObjectSubject, type WatchSubject } from './watch-subject.js'
import { defaultTiming, type WatchTiming } from './timing.js'
import type { StoredObject } from '../stored-object.js'
import { CollectionSubject } from './collection-subject.js'
import { collectionPath, objectTarget } from '../../kubernetes/reads/requests.js'
import { Reflector, watchContext, type WatchContext } from './reflector.js'

interface Watch {
  readonly subject: WatchSubject
  readonly watch: Reflector
  readonly ended: Promise<void>
}

type WatchScope = SourceConfiguration<'kubernetes'>['watch']

export interface KubernetesSourceOptions {
  readonly log?: Log
  /** In [0, 1); default Math.random. */
  readonly random?: () => number
  readonly timing?: Partial<WatchTiming>
  /** Bytes of content that stay in memory; default 16 MiB. */
  readonly contentBudget?: number
  /** A watch for each object (default), or for all of a namespace and kind. */
  readonly watch?: WatchScope
}

/** Bytes of content that stay in memory between two publications. */
const contentBudget = 16 * 1024 * 1024

export class KubernetesSource implements ObservableSource {
  readonly #store: ObjectStore
  readonly #watches = new Map<string, Watch>()
  /** In the scope `namespaces`: the followed objects, by collection and name. */
  readonly #collections = new Map<string, Map<string, StoredObject>>()
  readonly #scope: WatchScope
  readonly #context: WatchContext
  #closed = false

  /** The source owns the client from now on, and closes it. */
  constructor(client: ApiClient, listener: SourceListener, options: KubernetesSourceOptions = {}) {
    const timing = { ...defaultTiming, ...options.timing }
    const random = options.random ?? Math.random
    this.#scope = options.watch ?? 'objects'
    this.#store = new ObjectStore(listener, new ContentBudget(options.contentBudget ?? contentBudget))
    const log = options.log ?? silent
    this.#context = watchContext({ client, listener, log, random, timing })
  }

  follow(desired: readonly DesiredObject[]): void {
    if (this.#closed) return
    const { added, dropped } = this.#store.follow(desired)
    if (this.#scope === 'namespaces') this.#followCollections(added, dropped)
    else {
      for (const { reference } of dropped) this.#stop(objectName(reference))
      for (const stored of added) {
        this.#start(objectName(stored.reference), new ObjectSubject(stored, this.#context.client))
      }
    }
  }

  /**
   * A collection with new followed objects is listed again, unless its watch has just found the object by its label: the rest of the
   * known objects need no second read.
   */
  #followCollections(added: readonly StoredObject[], dropped: readonly StoredObject[]): void {
    for (const { reference } of dropped) {
      const collection = collectionPath(reference)
      const followed = this.#collections.get(collection)
      followed?.delete(reference.name)
      if (followed?.size !== 0) continue
      this.#collections.delete(collection)
      this.#stop(collection)
    }
    const changed = new Map<string, ObjectReference>()
    for (const stored of added) {
      const { reference } = stored
      const collection = collectionPath(reference)
      const followed = this.#collections.get(collection) ?? new Map<string, StoredObject>()
      this.#collections.set(collection, followed)
      followed.set(reference.name, stored)
      if (this.#collectionOf(reference)?.takes(stored) !== true) changed.set(collection, reference)
    }
    for (const [collection, reference] of changed) {
      const followed = this.#collections.get(collection)
      this.#stop(collection)
      if (followed) this.#start(collection, new CollectionSubject(reference, followed, this.#context))
    }
  }

  #start(key: string, subject: WatchSubject): void {
    const watch = new Reflector(subject, this.#context)
    this.#watches.set(key, { subject, watch, ended: watch.run() })
  }

  #stop(key: string): void {
    this.#watches.get(key)?.watch.stop()
    this.#watches.delete(key)
  }

  latest(reference: ObjectReference): ObservedState | undefined {
    return this.#store.latest(reference)
  }

  async load(reference: ObjectReference, signal: AbortSignal): Promise<LoadedState | undefined> {
    const { client, timing } = this.#context
    for (;;) {
      const stored = this.#store.find(reference)
      const before = stored?.latest
      if (stored === undefined || before?.state !== 'unloaded') return this.#store.loaded(reference)
      try {
        const observed = await readFresh(client, reference, { signal, timeout: timing.requestTimeout })
        const { latest } = stored
        // A watch's report meanwhile may be newer than the answer.
        if (latest === undefined || !isSameState(before, latest) || this.#store.find(reference) !== stored) continue
        // It may have lost its label since: then it is not to be published.
        if (this.#collectionOf(reference)?.takeLabels(stored, observed)) continue
        if (stored.offer(observed) === 'stale') stored.confirm(observed)
        return observed.observation
      } catch (error) {
        signal.throwIfAborted()
        return brokenRequest(objectTarget(reference), error).observation
      }
    }
  }

  #collectionOf(reference: ObjectReference): CollectionSubject | undefined {
    const subject = this.#watches.get(collectionPath(reference))?.subject
    return subject instanceof CollectionSubject ? subject : undefined
  }

  isBehind(reference: ObjectReference): boolean {
    return this.#store.find(reference)?.isBehind === true
  }

  published(reference: ObjectReference, version: ObjectVersion): void {
    this.#store.published(reference, version)
  }

  clientCertificateNotAfter(): Date | undefined {
    return this.#context.client.clientCertificateNotAfter()
  }

  get api(): ApiClient {
    return this.#context.client
  }

  subscribe(changed: () => void): () => void {
    return this.#store.subscribe(changed)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#store.close()
    const watches = [...this.#watches.values()]
    this.#watches.clear()
    for (const { watch } of watches) watch.stop()
    await Promise.all(watches.map(({ ended }) => ended))
    await this.#context.client.close()
  }
}
