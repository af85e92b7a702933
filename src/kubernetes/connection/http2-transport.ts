import type * as Http2 from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { ConnectionError } from './client.js'
import { wrapConnectionError, NotProcessed } from './connection-error.js'
import { errorSince } from './dial.js'
import type { HttpResponse, HttpRequest, Transport, TransportLimits } from './transport.js'

/** A stream may send this much before we read it: a Secret of any size in one round trip. */
const STREAM_WINDOW = 1024 * 1024
const CONNECTION_WINDOW = 4 * 1024 * 1024

/**
 * Makes an HTTP/2 session of a socket on which ALPN agreed on h2; resolves once the server has sent its settings.
 * There is no limit on how long a stream is silent: pings distinguish a dead connection from a quiet watch.
 */
export async function openHttp2(socket: TLSSocket, server: URL, limits: TransportLimits): Promise<Http2Transport> {
  // Loaded at once, where `import` may let the server's first frames, or its end, come before.
  const http2 = process.getBuiltinModule('node:http2')
  const error = errorSince(socket)
  if (error) throw error
  const session = http2.connect(server.origin, {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
  })
  const transport = new Http2Transport(session, http2, server.origin, limits, socket)
  // After a TLS alert the session is destroyed without an event, and the socket stays open (Node 20 to 24).
  socket.on('error', (error) => {
    transport.destroy(wrapConnectionError(server.origin, error))
    socket.destroy()
  })
  await transport.ready(limits.connect)
  session.setLocalWindowSize(CONNECTION_WINDOW)
  return transport
}

export class Http2Transport implements Transport {
  #draining = false
  #destroyed = false
  #failReady: (() => void) | undefined
  #failure: ConnectionError | undefined
  #pinging = false
  /** Bytes that had come when the last ping was due. */
  #heard = 0
  readonly #pings: NodeJS.Timeout

  constructor(
    private readonly session: Http2.ClientHttp2Session,
    private readonly http2: typeof Http2,
    private readonly server: string,
    private readonly limits: TransportLimits,
    private readonly socket: Pick<TLSSocket, 'bytesRead'>,
  ) {
    this.#pings = setInterval(() => this.#pingAfterSilence(), limits.ping).unref()
    session.on('goaway', (code: number) => {
      const detail = code === 0 ? '' : `, code ${code}`
      this.#failure ??= this.#error(`the server is closing the connection (GOAWAY${detail})`, 'goaway')
    })
    session.on('error', (error) => (this.#failure ??= wrapConnectionError(server, error)))
    session.on('close', () => {
      clearInterval(this.#pings)
      this.#failure ??= this.#error('the connection was closed', 'connection')
    })
  }

  /** SETTINGS is the first frame that a server sends; before it, the number of streams is a guess. */
  ready(timeout: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.destroy(this.#error(`no HTTP/2 settings within ${timeout} ms`, 'timeout'))
      }, timeout)
      const fail = (): void => {
        clearTimeout(timer)
        reject(this.#failure ?? this.#error('the connection was closed', 'connection'))
      }
      this.#failReady = fail
      this.session.once('close', fail)
      this.session.once('remoteSettings', () => {
        clearTimeout(timer)
        this.session.off('close', fail)
        this.#failReady = undefined
        resolve()
      })
    })
  }

  get limit(): number {
    const theirs = this.session.destroyed ? 0 : (this.session.remoteSettings.maxConcurrentStreams ?? Infinity)
    return Math.max(1, Math.min(this.limits.streams, theirs))
  }

  get sockets(): number {
    return this.session.destroyed ? 0 : 1
  }

  get received(): number {
    return this.socket.bytesRead
  }

  get open(): boolean {
    return !this.#draining && !this.session.closed && !this.session.destroyed
  }

  async request(request: HttpRequest, done: () => void): Promise<HttpResponse> {
    const { signal } = request
    const stream = this.#start(request)
    if (request.body !== undefined) stream.end(request.body)
    return this.#answer(stream, signal, done)
  }

  /** These listeners live as long as a watch is open, so their closure holds nothing of the request. */
  #answer(stream: Http2.ClientHttp2Stream, signal: AbortSignal, done: () => void): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        stream.close(this.http2.constants.NGHTTP2_CANCEL)
        stream.destroy(signal.reason as Error)
      }
      signal.addEventListener('abort', abort, { once: true })
      let answered = false
      stream.once('response', (headers) => {
        answered = true
        const status = headers[':status'] ?? 0
        resolve({ status, headers, body: stream, broken: () => this.#broken(stream) })
      })
      // Stays, so that an error after the answer is not unhandled until the reader meets it.
      stream.on('error', (error: Error) => {
        if (!answered) reject(this.#explain(error, stream, signal))
      })
      stream.once('close', () => {
        signal.removeEventListener('abort', abort)
        done()
        if (!answered)
          reject(this.#explain(new Error('the server closed the stream without an answer'), stream, signal))
      })
    })
  }

  /** As client-go does: a connection over which anything comes is alive. */
  #pingAfterSilence(): void {
    const { received } = this
    if (received === this.#heard) this.probe()
    this.#heard = received
  }

  probe(): void {
    if (this.#pinging || this.session.destroyed) return
    this.#pinging = true
    let before = this.received
    const timer = setInterval(() => {
      const { received } = this
      // On a slow link the answer waits behind what is on its way already.
      if (received !== before) {
        before = received
        return
      }
      clearInterval(timer)
      this.destroy(this.#error(`no answer to a ping within ${this.limits.pong} ms`, 'timeout'))
    }, this.limits.pong).unref()
    const answered = (): void => {
      this.#pinging = false
      clearInterval(timer)
    }
    try {
      this.session.ping(answered)
    } catch {
      answered()
    }
  }

  drain(): void {
    this.#draining = true
    this.session.close()
  }

  destroy(error: ConnectionError): void {
    if (this.#destroyed) return
    this.#destroyed = true
    // A GOAWAY may have come before; but this error ends the streams.
    this.#failure = error
    this.session.destroy(error)
    clearInterval(this.#pings)
    this.#failReady?.()
  }

  #start({ method, path, headers, body }: HttpRequest): Http2.ClientHttp2Stream {
    const { sensitiveHeaders } = this.http2
    try {
      return this.session.request(
        {
          ':method': method,
          ':path': path,
          ...(headers as Record<string, string | string[]>),
          // Never put into the compression table of either end.
          [sensitiveHeaders]: ['authorization'],
        },
        { endStream: body === undefined },
      )
    } catch (error) {
      // The session has just been closed: nothing was sent.
      throw new NotProcessed('the connection takes no more requests', { cause: error })
    }
  }

  #broken({ rstCode }: Http2.ClientHttp2Stream): ConnectionError | undefined {
    if (rstCode === this.http2.constants.NGHTTP2_NO_ERROR) return undefined
    return this.#failure ?? this.#error(`the stream was cut off (code ${rstCode})`, 'connection')
  }

  #explain(error: Error, stream: Http2.ClientHttp2Stream, signal: AbortSignal): Error {
    if (signal.aborted) return signal.reason as Error
    const { NGHTTP2_REFUSED_STREAM } = this.http2.constants
    if (stream.rstCode === NGHTTP2_REFUSED_STREAM) return new NotProcessed('refused', { cause: error })
    return this.#failure ?? wrapConnectionError(this.server, error)
  }

  #error(problem: string, reason: ConnectionError['reason']): ConnectionError {
    return new ConnectionError(`${this.server}: ${problem}`, reason)
  }
}
