/**
 * Secrets and ConfigMaps of the Kubernetes API, one watch for each object that is followed, so that a Role can name them.
 *
 * A caller may rely on this: what it reports of an object never goes backwards, but for a history that was rewound (an
 * etcd restored from a backup), which a fresh read has confirmed and which it reports as such; it reports absence only when it is
 * certain; what is known stays so while the server is away; one object that is denied or broken does not hold up others.
 */
import { type Log, silent } from '../../log.js'
import type { ObservableSource } from '../first-answers.js'
import { ContentBudget } from '../content-budget.js'
import { isSameState } from '../same-state.js'
import { ObjectStore } from '../store.js'
import {
  describeReference,
  type ObjectReference,
  type LoadedState,
  type ObjectVersion,
  type ObservedState,
  type SourceListener,
  type DesiredObject,
} from '../types.js'
import type { ApiClient } from './client.js'
import { brokenRequest } from './api-error.js'
import { readFresh } from './reads.js'
import { Recovery } from './recovery.js'
import { defaultTiming, type WatchTiming } from './timing.js'
import { StreamingLists } from './streaming-lists.js'
import { objectTarget } from './requests.js'
import { Reflector, type WatchContext } from './reflector.js'

export interface KubernetesSourceOptions {
  readonly log?: Log
  /** In [0, 1); default Math.random. */
  readonly random?: () => number
  readonly timing?: Partial<WatchTiming>
  /** Bytes of content that stay in memory; default 16 MiB. */
  readonly contentBudget?: number
}

/** Bytes of content that stay in memory between two publications. */
const contentBudget = 16 * 1024 * 1024

export class KubernetesSource implements ObservableSource {
  readonly #store: ObjectStore
  readonly #watches = new Map<string, { watch: Reflector; ended: Promise<void> }>()
  readonly #context: WatchContext
  #closed = false

  /** The source owns the client from now on, and closes it. */
  constructor(client: ApiClient, listener: SourceListener, options: KubernetesSourceOptions = {}) {
    const timing = { ...defaultTiming, ...options.timing }
    const random = options.random ?? Math.random
    this.#store = new ObjectStore(listener, new ContentBudget(options.contentBudget ?? contentBudget))
    this.#context = {
      client,
      listener,
      log: options.log ?? silent,
      random,
      timing,
      recovery: new Recovery(timing, random),
      streamingLists: new StreamingLists(options.log ?? silent, timing.streamingRetry),
    }
  }

  follow(desired: readonly DesiredObject[]): void {
    if (this.#closed) return
    const { added, dropped } = this.#store.follow(desired)
    for (const { reference } of dropped) {
      this.#watches.get(describeReference(reference))?.watch.stop()
      this.#watches.delete(describeReference(reference))
    }
    for (const stored of added) {
      const watch = new Reflector(stored, this.#context)
      this.#watches.set(describeReference(stored.reference), { watch, ended: watch.run() })
    }
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
        // What a watch has said meanwhile may be newer than the answer.
        if (latest === undefined || !isSameState(before, latest)) continue
        if (stored.offer(observed) === 'stale') stored.confirm(observed)
        return observed.observation
      } catch (error) {
        signal.throwIfAborted()
        return brokenRequest(objectTarget(reference), error).observation
      }
    }
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
