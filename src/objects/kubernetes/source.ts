/**
 * Secrets and ConfigMaps of the Kubernetes API, one watch for each object that is followed, so that a Role can name them.
 *
 * A caller may rely on this: what it reports of an object never goes backwards, but for a history that was rewound (an
 * etcd restored from a backup), which a fresh read has confirmed and which it reports as such; it reports absence only when it is
 * certain; what is known stays so while the server is away; one object that is denied or broken does not hold up others.
 */
import { type Log, silent } from '../../log.js'
import type { ObservableSource } from '../first-answers.js'
import { ObjectStore } from '../store.js'
import {
  describeReference,
  type ObjectReference,
  type ObjectVersion,
  type ObservedState,
  type SourceListener,
  type DesiredObject,
} from '../types.js'
import type { ApiClient } from './client.js'
import { Recovery } from './recovery.js'
import { defaultTiming, type WatchTiming } from './timing.js'
import { StreamingLists } from './streaming-lists.js'
import { Reflector, type WatchContext } from './reflector.js'

export interface KubernetesSourceOptions {
  readonly log?: Log
  /** In [0, 1); default Math.random. */
  readonly random?: () => number
  readonly timing?: Partial<WatchTiming>
}

export class KubernetesSource implements ObservableSource {
  readonly #store: ObjectStore
  readonly #watches = new Map<string, { watch: Reflector; ended: Promise<void> }>()
  readonly #context: WatchContext
  #closed = false

  /** The source owns the client from now on, and closes it. */
  constructor(client: ApiClient, listener: SourceListener, options: KubernetesSourceOptions = {}) {
    const timing = { ...defaultTiming, ...options.timing }
    const random = options.random ?? Math.random
    this.#store = new ObjectStore(listener)
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
