import type * as Http from 'node:http'
import type { Socket } from 'node:net'
import type { AccessSnapshot } from '../credentials/access.js'
import type { ConnectionError } from './client.js'
import { wrapConnectionError, NotProcessed } from './connection-error.js'
import { errorSince, KEEP_ALIVE } from './dial.js'
import type { HttpResponse, HttpRequest, Transport } from './transport.js'
import { proxyAuthorization } from './tunnel.js'

/** Idle sockets that stay open between requests. */
const MAX_IDLE_SOCKETS = 8

/** `first` is open already; `dial` opens more. Rejects with the error of the first one, if it has failed meanwhile. */
export async function openHttp1(
  access: AccessSnapshot,
  first: Socket,
  dial: () => Promise<Socket>,
): Promise<Transport> {
  const http = await import('node:http')
  const error = errorSince(first)
  if (error) throw error
  return new Http1Transport(http, access, first, dial)
}

/**
 * HTTP/1.1, where the server or a proxy offers nothing better: a socket for each request under way. TCP keep-alives
 * stand in for pings; they reach the next hop only.
 */
class Http1Transport implements Transport {
  readonly limit = Infinity
  readonly #sockets = new Set<Socket>()
  readonly #agent: Http.Agent
  #draining = false
  /** Bytes that have come over sockets that are closed. */
  #past = 0
  #failure: ConnectionError | undefined

  constructor(
    private readonly http: typeof Http,
    private readonly access: AccessSnapshot,
    first: Socket,
    dial: () => Promise<Socket>,
  ) {
    let spare: Socket | undefined = first
    this.#track(first)
    // Until the first request takes the socket, only these listeners hear of its end.
    const gone = (): void => (spare = undefined)
    first.once('close', gone)
    first.on('error', gone)
    this.#agent = agentOver(http, async () => {
      if (spare) {
        const socket = spare
        spare = undefined
        return socket
      }
      const socket = await dial()
      if (this.#failure) {
        socket.destroy()
        throw this.#failure
      }
      this.#track(socket)
      return socket
    })
  }

  get sockets(): number {
    return this.#sockets.size
  }

  /** Closed once its last socket is, so that the next request asks again which protocol the server speaks. */
  get received(): number {
    let sum = this.#past
    for (const { bytesRead } of this.#sockets) sum += bytesRead
    return sum
  }

  get open(): boolean {
    return !this.#draining && this.#sockets.size > 0
  }

  request(request: HttpRequest, done: () => void): Promise<HttpResponse> {
    const { method, headers, body, signal } = request
    const { server, proxy } = this.access
    const throughProxy = server.protocol === 'http:' ? proxy : undefined
    const authorization = throughProxy && proxyAuthorization(throughProxy)
    return new Promise((resolve, reject) => {
      const sent = this.http.request({
        agent: this.#agent,
        host: server.hostname,
        method,
        path: throughProxy ? `${server.origin}${request.path}` : request.path,
        headers: {
          host: server.host,
          ...(headers as Record<string, string | string[]>),
          ...(authorization !== undefined && { 'proxy-authorization': authorization }),
          ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        },
      })
      const abort = (): void => void sent.destroy(signal.reason as Error)
      signal.addEventListener('abort', abort, { once: true })
      let answered = false
      sent.once('response', (response) => {
        answered = true
        // Errors after the head are the reader's to see; until it reads, they must not go unhandled.
        response.on('error', () => undefined)
        const { statusCode = 0, headers: received } = response
        const broken = () => (response.complete ? undefined : this.#failure)
        resolve({ status: statusCode, headers: received, body: response, broken })
      })
      sent.on('error', (error) => {
        if (!answered) reject(this.#explain(error, sent, request))
      })
      sent.once('close', () => {
        signal.removeEventListener('abort', abort)
        done()
        if (!answered)
          reject(this.#explain(new Error('the server closed the connection without an answer'), sent, request))
      })
      sent.end(body)
    })
  }

  /** Keep-alives do it. */
  probe(): void {}

  drain(): void {
    this.#draining = true
    // Sockets under way are closed by the agent when they become free: it keeps none any more.
    this.#agent.maxFreeSockets = 0
    for (const sockets of Object.values(this.#agent.freeSockets)) {
      for (const socket of sockets ?? []) socket.destroy()
    }
  }

  destroy(error: ConnectionError): void {
    this.#failure ??= error
    this.#draining = true
    this.#agent.destroy()
    for (const socket of this.#sockets) socket.destroy(this.#failure)
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#past += socket.bytesRead
      this.#sockets.delete(socket)
    })
  }

  #explain(error: Error, sent: Http.ClientRequest, { method, signal }: HttpRequest): Error {
    if (signal.aborted) return signal.reason as Error
    if (this.#failure) return this.#failure
    const code = (error as NodeJS.ErrnoException).code
    const stale = sent.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE')
    // The server closed an idle socket just as we took it. What changes nothing may be asked again.
    if (stale && method === 'GET') return new NotProcessed('the connection was closed', { cause: error })
    return wrapConnectionError(this.access.server.origin, error)
  }
}

/** An agent that asks `obtain` for each new socket. */
function agentOver(http: typeof Http, obtain: () => Promise<Socket>): Http.Agent {
  class SocketAgent extends http.Agent {
    /** Node's agent asks here for each new socket, and waits for the callback. */
    override createConnection(_options: unknown, callback?: (error: Error | null, socket: Socket) => void) {
      obtain().then(
        (socket) => callback?.(null, socket),
        // The type has no form for a failure; on one, the agent looks at the error alone.
        (error: unknown) => callback?.(error as Error, undefined as unknown as Socket),
      )
      return undefined
    }
  }
  return new SocketAgent({
    keepAlive: true,
    keepAliveMsecs: KEEP_ALIVE,
    maxFreeSockets: MAX_IDLE_SOCKETS,
    scheduling: 'lifo',
  })
}
