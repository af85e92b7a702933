import { lazyAccess, sameAccess, type AccessSnapshot, type ClusterAccess } from './access.js'
import { ConnectionError } from './client.js'
import type { ApiClient, ApiResponse, ApiStream, RequestOptions } from './client.js'
import { wrapConnectionError, NotProcessed } from './connection-error.js'
import { Deadline, unlessAborted } from '../../deadline.js'
import { notAfter } from './pem.js'
import { parseJson, readBody, readLines, refuseEncoding, retryAfter } from './response-body.js'
import { Renewal } from './renewal.js'
import { transportLimits, type Answer, type TransportLimits } from './transport.js'
import { TransportPool } from './transport-pool.js'

export interface ConnectOptions {
  /** holdfast's own, for the User-Agent. */
  readonly version: string
  readonly limits?: Partial<TransportLimits>
}

/**
 * A client of the API server that `access` leads to. Nothing is opened before the first request. `access` may be a
 * function, which is called until it succeeds: an agent may start before its kubeconfig is there, and every request
 * rejects with ConnectionError 'credentials' meanwhile. Call `close` in the end: open connections keep a process alive.
 */
export function connect(access: ClusterAccess | (() => Promise<ClusterAccess>), options: ConnectOptions): ApiClient {
  return new Connection(access, options)
}

/** A failure's body is a metav1.Status. */
const MAX_STATUS_BODY = 1024 * 1024

/** How often one request is refused unprocessed before it fails. */
const MAX_REFUSED = 3

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly signal: AbortSignal
}

class Connection implements ApiClient {
  readonly #limits: TransportLimits
  readonly #pool: TransportPool
  readonly #userAgent: string
  readonly #checks: NodeJS.Timeout
  readonly #access: ClusterAccess
  readonly #renewal = new Renewal(() => this.#differs())
  #rejected: AccessSnapshot | undefined
  #connectionId: string | undefined
  #notAfter: Date | undefined
  #closed: ConnectionError | undefined

  constructor(access: ClusterAccess | (() => Promise<ClusterAccess>), options: ConnectOptions) {
    this.#limits = { ...transportLimits, ...options.limits }
    this.#pool = new TransportPool(this.#limits)
    this.#userAgent = `holdfast/${options.version} (linux/${process.arch === 'x64' ? 'amd64' : process.arch})`
    this.#access = typeof access === 'function' ? lazyAccess(access) : access
    // Credentials may rotate while nothing but silent watches goes on.
    this.#checks = setInterval(() => this.#check(), this.#limits.ping).unref()
  }

  get defaultNamespace(): string | undefined {
    return this.#access.namespace
  }

  get connections(): number {
    return this.#pool.connections
  }

  clientCertificateNotAfter(): Date | undefined {
    return this.#notAfter
  }

  renewal(signal: AbortSignal): Promise<void> {
    return this.#renewal.wait(signal)
  }

  async get(path: string, query: Readonly<Record<string, string>>, options: RequestOptions): Promise<ApiResponse> {
    return this.#send('GET', path, query, undefined, options)
  }

  async send(method: 'POST' | 'PATCH', path: string, body: unknown, options: RequestOptions): Promise<ApiResponse> {
    return this.#send(method, path, {}, JSON.stringify(body), options)
  }

  async stream(path: string, query: Readonly<Record<string, string>>, options: RequestOptions): Promise<ApiStream> {
    const what = `GET ${path}`
    const deadline = deadlineOf(what, options)
    const { signal } = deadline
    try {
      const answer = await this.#call({ method: 'GET', path, query, body: undefined, signal })
      const head = { status: answer.status, retryAfter: retryAfter(answer.headers['retry-after']) }
      if (answer.status !== 200) {
        const body = parseJson(await readBody(answer, MAX_STATUS_BODY, what, signal))
        deadline.dispose()
        return { ...head, body, lines: noLines() }
      }
      deadline.met()
      answer.body.once('close', () => deadline.dispose())
      return { ...head, body: undefined, lines: readLines(answer, this.#limits.line, what, signal) }
    } catch (error) {
      deadline.dispose()
      throw error
    }
  }

  close(): Promise<void> {
    clearInterval(this.#checks)
    this.#closed ??= new ConnectionError('the client was closed', 'connection')
    this.#pool.destroy(this.#closed)
    return Promise.resolve()
  }

  async #send(
    method: Call['method'],
    path: string,
    query: Readonly<Record<string, string>>,
    body: string | undefined,
    options: RequestOptions,
  ): Promise<ApiResponse> {
    const what = `${method} ${path}`
    const deadline = deadlineOf(what, options)
    const { signal } = deadline
    try {
      const answer = await this.#call({ method, path, query, body, signal })
      const bytes = await readBody(answer, this.#limits.body, what, signal)
      const after = retryAfter(answer.headers['retry-after'])
      return { status: answer.status, retryAfter: after, body: parseJson(bytes) }
    } finally {
      deadline.dispose()
    }
  }

  /** Sends a request; again if it was refused unprocessed, and once with renewed credentials after a 401. */
  async #call(call: Call): Promise<Answer> {
    let access = await this.#current(call.signal)
    let renewed = false
    for (let refused = 0; ;) {
      try {
        const answer = await this.#attempt(access, call)
        if (answer.status !== 401) return answer
        this.#rejected = access
        if (renewed) return answer
        renewed = true
        const next = await this.#current(call.signal, access)
        if (sameAccess(next, access)) return answer
        answer.body.destroy()
        access = next
      } catch (error) {
        if (!(error instanceof NotProcessed)) throw error
        refused += 1
        if (refused > MAX_REFUSED) throw wrapConnectionError(access.server.origin, error.cause ?? error)
        access = await this.#current(call.signal)
      }
    }
  }

  async #attempt(access: AccessSnapshot, call: Call): Promise<Answer> {
    const lease = await this.#pool.lease(access, call.signal)
    try {
      const request = this.#request(access, call)
      return refuseEncoding(await lease.transport.request(request, lease.release), `${call.method} ${call.path}`)
    } catch (error) {
      lease.release()
      // A slow answer may mean that nobody is there any more: find out before the next request does.
      if (call.signal.aborted) lease.transport.probe()
      throw error
    }
  }

  #request(access: AccessSnapshot, { method, path, query, body, signal }: Call) {
    const search = new URLSearchParams(query).toString()
    const base = access.server.pathname.replace(/\/+$/, '')
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    return {
      method,
      path: `${base}${path}${search === '' ? '' : `?${search}`}`,
      headers: {
        accept: 'application/json',
        'user-agent': this.#userAgent,
        ...(body !== undefined && { 'content-type': type }),
        ...access.headers,
      },
      body,
      signal,
    }
  }

  async #current(signal: AbortSignal, rejected?: AccessSnapshot): Promise<AccessSnapshot> {
    if (this.#closed) throw this.#closed
    const work = rejected ? this.#access.renew(rejected) : this.#access.current()
    let access: AccessSnapshot
    try {
      access = await unlessAborted(work, signal)
    } catch (error) {
      if (signal.aborted) throw error
      throw new ConnectionError((error as Error).message, 'credentials', { cause: error })
    }
    this.#adopt(access)
    return access
  }

  /** Connections made with what has been replaced end in good order. */
  #adopt(access: AccessSnapshot): void {
    // A client that was closed while the credentials were read must not open anything.
    if (this.#closed) throw this.#closed
    if (access.connectionId === this.#connectionId) return
    this.#connectionId = access.connectionId
    this.#notAfter = access.certificate && notAfter(access.certificate.chain)
    this.#pool.adopt(access.connectionId)
  }

  async #differs(): Promise<boolean> {
    return this.#rejected !== undefined && this.#access.differs(this.#rejected)
  }

  #check(): void {
    // Without a first request there is nothing to keep up; a failure shows itself to the next request.
    if (this.#connectionId === undefined) return
    this.#access.current().then(
      (access) => {
        if (!this.#closed) this.#adopt(access)
      },
      () => undefined,
    )
  }
}

async function* noLines(): AsyncGenerator<string> {}

function deadlineOf(what: string, { timeout, signal }: RequestOptions): Deadline {
  return new Deadline(timeout, signal, () => new ConnectionError(`${what}: no answer within ${timeout} ms`, 'timeout'))
}
