import type { Readable } from 'node:stream'
import type { ConnectionError } from './client.js'

/** Milliseconds, and counts, that tests make smaller. */
export interface TransportLimits {
  /** From the first packet until the server has sent its settings. */
  readonly connect: number
  /** Between two pings of a connection. */
  readonly ping: number
  /** Until the credentials must be there: longer than a credential plugin may take. */
  readonly credentials: number
  /** Until a ping must be answered. */
  readonly pong: number
  /** How long the streams of a connection with outdated credentials may go on. */
  readonly drain: number
  /** A connection without requests is closed after this. */
  readonly idle: number
  /** Streams that one connection carries at most; the server may allow fewer. */
  readonly streams: number
  /** Connections at most, over all. */
  readonly connections: number
  /** Bytes of one whole response: a list. The Secrets of one name are a MiB; a list of many may be large. */
  readonly body: number
  /** Bytes of one line of a stream: one object, at most 1 MiB of data, with escapes and managed fields. */
  readonly line: number
}

export const transportLimits: TransportLimits = {
  connect: 15_000,
  ping: 30_000,
  credentials: 75_000,
  pong: 15_000,
  drain: 30_000,
  idle: 300_000,
  // kube-apiserver allows 100 itself (--http2-max-streams-per-connection, since CVE-2023-44487).
  streams: 100,
  connections: 64,
  body: 64 * 1024 * 1024,
  line: 16 * 1024 * 1024,
}

export interface HttpRequest {
  readonly method: string
  /** With the query, as it goes into the request line. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string | undefined
  /** Ends the request, at any time, with the signal's reason. */
  readonly signal: AbortSignal
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>
  /** Must be read to its end or destroyed. Its end alone does not mean that it is whole: ask `broken`. */
  readonly body: Readable
  /** Once the body has ended or failed: why it is not whole, as far as the connection knows. */
  readonly broken: () => ConnectionError | undefined
}

/** A connection that requests share. */
export interface Transport {
  /** Requests that it takes at once. */
  readonly limit: number
  /** Sockets that are open. */
  readonly sockets: number
  /** Bytes that have come over all of its sockets. */
  readonly received: number
  /** Whether it takes new requests. */
  readonly open: boolean
  /** Rejects with ConnectionError, NotProcessed, or the signal's reason. `done` is called when the stream is over. */
  request(request: HttpRequest, done: () => void): Promise<HttpResponse>
  /** Something timed out: find out now whether the other end is there. */
  probe(): void
  /** Takes no new requests, and ends when those under way have. */
  drain(): void
  /** Ends everything now. */
  destroy(error: ConnectionError): void
}
