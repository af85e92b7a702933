/** A collection of the API server, as far as its answers have come: a subject of the watcher that the agent's objects have, too. */
import type { ApiClient } from '../kubernetes/connection/client.js'
import { refusedRequest } from '../kubernetes/reads/api-error.js'
import { listPages } from '../kubernetes/reads/list-pages.js'
import { itemsOf, metadataName, resourceVersionOf } from '../kubernetes/reads/observed-version.js'
import { watchQuery, type ApiTarget, type metadataOnly, type Query } from '../kubernetes/reads/requests.js'
import type { Log } from '../log.js'
import { Reflector, watchContext } from '../objects/kubernetes/reflector.js'
import { defaultTiming } from '../objects/kubernetes/timing.js'
import type { Ask, WatchEvents, WatchFailure, WatchSubject } from '../objects/kubernetes/watch-subject.js'

/** Objects of a page: of reports of 10 directories, some 1 MiB. */
const pageSize = 100

/** A person waits for it: the pauses are shorter than an agent's. */
const timing = {
  ...defaultTiming,
  firstDelay: 200,
  longestDelay: 5_000,
  requestTimeout: 30_000,
  watchSeconds: [300, 300],
} as const

/** The API server does not answer. */
export interface Silence {
  /** RFC 3339. */
  readonly since: string
  readonly message: string
}

export interface CollectionOptions<Item> {
  readonly target: ApiTarget
  readonly path: string
  /** Of all of its objects, those that are read. */
  readonly selector?: Query
  /** The media types of answers; default whole objects. */
  readonly accept?: typeof metadataOnly
  /** What is kept of an object; undefined: nothing. */
  readonly read: (object: unknown) => Item | undefined
  /** Is called after each answer, and where none comes. */
  readonly changed: () => void
}

export class FleetCollection<Item> implements WatchSubject {
  /** What is kept, by the names of the objects. */
  readonly items = new Map<string, Item>()
  readonly target: ApiTarget
  readonly path: string
  readonly accept: string | undefined
  /** A list has pages, and a stream has none. */
  readonly streams = false
  /** A whole list has come. */
  isWhole = false
  /** Since the API server does not answer, what is here may be old. */
  silence: Silence | undefined
  readonly #selector: Query
  /** From performance.now(), which no setting of a clock moves, to the server's clock, in milliseconds. */
  #offset = performance.timeOrigin

  constructor(
    private readonly api: Pick<ApiClient, 'get'>,
    private readonly options: CollectionOptions<Item>,
  ) {
    this.target = options.target
    this.path = options.path
    this.accept = options.accept?.object
    this.#selector = options.selector ?? {}
  }

  readonly objects = (): readonly never[] => []

  /** By the server's clock. A list takes a moment: a clock that is wrong by less than the longest quiet changes nothing. */
  now(): Date {
    return new Date(performance.now() + this.#offset)
  }

  query(from: string | undefined, seconds: number): Query {
    return watchQuery(this.#selector, from ?? '', seconds)
  }

  /** Reads it once. @throws ApiError, ConnectionError, the signal's reason */
  async read(signal: AbortSignal): Promise<void> {
    await this.list(() => ({ signal, timeout: timing.requestTimeout }))
  }

  async list(ask: Ask): Promise<string | undefined> {
    const listed = new Set<string>()
    let version: string | undefined
    const accept = this.options.accept?.list
    const get = (page: Query) =>
      this.api.get(this.path, { ...this.#selector, ...page }, { ...ask(), verb: 'list', accept })
    for await (const answer of listPages(get, { limit: pageSize })) {
      if (answer.status !== 200) throw refusedRequest(this.target, 'list', answer)
      for (const item of itemsOf(answer.body, this.target)) {
        listed.add(metadataName(item) ?? '')
        this.#put(item)
      }
      version = resourceVersionOf(answer.body)
      if (answer.date !== undefined) this.#offset = answer.date - performance.now()
    }
    for (const name of this.items.keys()) if (!listed.has(name)) this.items.delete(name)
    this.isWhole = true
    this.options.changed()
    return version
  }

  events(): WatchEvents {
    this.silence = undefined
    this.options.changed()
    return {
      take: (type, object) => {
        if (type === 'DELETED') this.items.delete(metadataName(object) ?? '')
        else this.#put(object)
        this.options.changed()
        return Promise.resolve()
      },
      complete: () => Promise.resolve(),
    }
  }

  /** A refusal is final before the first whole list. After it, a server that has just started denies what it grants once it has read its roles. */
  failed({ error, log, level, isNews }: WatchFailure): void {
    const { reason, cause } = error
    if (!this.isWhole && (reason === 'denied' || (reason === 'protocol' && cause === undefined))) throw error
    if (reason === 'expired') return
    // Streams of several collections break together.
    log[this.silence || !isNews ? 'debug' : level]({}, `${this.path} is read again: ${error.message}`)
    this.silence = { since: this.silence?.since ?? this.now().toISOString(), message: error.message }
    this.options.changed()
  }

  #put(object: unknown): void {
    const name = metadataName(object)
    if (name === undefined) return
    const item = this.options.read(object)
    if (item === undefined) this.items.delete(name)
    else this.items.set(name, item)
  }
}

/** Follows these until the signal aborts. @throws ApiError: the API server refuses one that was never read */
export async function followAll(
  client: ApiClient,
  collections: readonly FleetCollection<unknown>[],
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  const listener = { watchRestarted: () => undefined }
  const context = watchContext({ client, listener, log, random: Math.random, timing })
  const watches = collections.map((collection) => new Reflector(collection, context))
  const stop = (): void => {
    for (const watch of watches) watch.stop()
  }
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  try {
    await Promise.all(watches.map((watch) => watch.run()))
  } finally {
    stop()
    signal.removeEventListener('abort', stop)
  }
}
