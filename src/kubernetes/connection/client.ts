import type { Pausable } from '../../deadline.js'
import type { ReadProgress } from './progress.js'

/** The few things that holdfast asks of an API server. connection.ts is the real one. */
export interface ApiClient {
  /**
   * GETs one JSON document. Resolves for every HTTP status; rejects with ConnectionError where no answer came (refused,
   * reset, TLS, timeout, a bad kubeconfig).
   */
  get(path: string, query: Readonly<Record<string, string>>, options: RequestOptions): Promise<ApiResponse>
  /** GETs a stream of JSON documents, one a line: a watch. Rejects like `get`; so does `takeLines` when the stream breaks. */
  stream(path: string, query: Readonly<Record<string, string>>, options: StreamOptions): Promise<ApiStream>
  /** POSTs or PATCHes one JSON document. */
  send(method: 'POST' | 'PATCH', path: string, body: unknown, options: SendOptions): Promise<ApiResponse>
  /** The namespace that the kubeconfig's context or the service account names, if any. */
  readonly defaultNamespace: string | undefined
  /** Not-after of the client certificate in use. */
  clientCertificateNotAfter(): Date | undefined
  /** After a 401: resolves when other credentials can be had than the server has rejected, or when the signal aborts. */
  renewal(signal: AbortSignal): Promise<void>
  /** Number of connections that are open now (one for up to 100 watches). */
  readonly connections: number
  close(): Promise<void>
}

export interface RequestOptions {
  readonly signal?: AbortSignal
  /** Milliseconds without anything of the answer: of its head (stream), or until it is whole (get, send). See progress.ts for a slow link. */
  readonly timeout: number
  /** The API server's verb for a `get`, for its observer; default `get`. */
  readonly verb?: 'list'
  /** Media types that the answer may have; default `application/json`. */
  readonly accept?: string | undefined
}

export interface SendOptions extends RequestOptions {
  /** Of a PATCH: a server-side apply by this field manager. Without `force`, another manager's field answers 409. Default: a merge patch. */
  readonly apply?: { readonly manager: string; readonly force: boolean }
}

export interface StreamOptions extends Omit<RequestOptions, 'signal' | 'verb'> {
  /**
   * Aborts the stream at any time. The client aborts it, too, where the answer's head is late: a separate signal would be a kibibyte
   * more for each open watch.
   */
  readonly attempt?: AbortController
}

/** As in the API server's own metrics. */
export type ApiVerb = 'get' | 'list' | 'watch' | 'create' | 'patch'

/** Counts what a client costs the API server. */
export interface ApiObserver {
  /** One request was sent; undefined: no answer came. */
  requested(verb: ApiVerb, status: number | undefined): void
  /** A request had to wait for so long, so as not to exceed the client's own limit. */
  throttled(seconds: number): void
  /** So many more watches are open, or fewer. */
  watches(change: 1 | -1): void
}

export interface ApiResponse {
  readonly status: number
  /** Milliseconds, from Retry-After (seconds or a date), where the server sent one. */
  readonly retryAfter: number | undefined
  /** The server's clock, in milliseconds since the epoch, where it sent its date. */
  readonly date?: number | undefined
  /** The parsed body; a metav1.Status on failure, undefined where it is not JSON. */
  readonly body: unknown
  /** The program that seems to have answered in the API server's place; absent where nothing says so. */
  readonly foreign?: string
  /** No credential was sent. */
  readonly anonymous?: boolean
}

export interface LinePatience extends Pausable {
  /** More of the stream came. `unfinished`: it ends within a line. */
  came(unfinished: boolean): void
}

export interface ApiStream {
  readonly status: number
  readonly retryAfter: number | undefined
  /** For a status other than 200: the parsed body. */
  readonly body: unknown
  /** As in ApiResponse. */
  readonly foreign?: string
  /** As in ApiResponse. */
  readonly anonymous?: boolean
  /**
   * For status 200, and once: hands over each line, without its newline, and waits for `take` before the next one. Resolves when the server
   * has ended the stream in order; rejects with `take`'s error, too. `patience` with the server does not run while a line waits for its
   * place among the large ones.
   */
  readonly takeLines: (take: (line: StreamLine) => Promise<void>, patience?: LinePatience) => Promise<void>
  /** What tells a slow link from silence. */
  readonly progress: ReadProgress
}

/** The API server gave no answer, or one that can only be another program's. `reason` says what kind of restart this is. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  constructor(
    message: string,
    readonly reason: 'connection' | 'goaway' | 'timeout' | 'credentials' | 'rotation' | 'protocol',
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** A response of more bytes, or of more values, than holdfast takes at once. */
export class AnswerTooLarge extends ConnectionError {
  constructor(message: string) {
    super(message, 'connection')
  }
}

/**
 * One line, which can be read once. A generator that waits for the next line keeps what its variables hold, and so does its reader: a
 * watch of a Secret of 1 MiB would keep another 1.4 MiB for as long as nothing happens.
 */
export class StreamLine {
  #pieces: Buffer[]

  constructor(pieces: Buffer[]) {
    this.#pieces = pieces
  }

  get empty(): boolean {
    return this.#pieces.every(({ length }) => length === 0)
  }

  take(): string {
    const text = Buffer.concat(this.#pieces).toString()
    this.#pieces = []
    return text
  }
}
