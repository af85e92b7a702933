import { once } from 'node:events'
import { isAnonymous, sameAccess, type AccessSnapshot } from '../credentials/access.js'
import type { Credentials } from '../credentials/credentials.js'
import {
  ConnectionError,
  type ApiClient,
  type ApiObserver,
  type ApiResponse,
  type ApiStream,
  type RequestOptions,
  type SendOptions,
  type StreamOptions,
  type ApiVerb,
} from './client.js'
import { wrapConnectionError, NotProcessed } from './connection-error.js'
import { Deadline, unlessAborted } from '../../deadline.js'
import { LargeReads } from './large-reads.js'
import { notAfter } from '../../x509/certificates.js'
import { ReadProgress } from './progress.js'
import { readDate, foreignAnswer, parseJson, readBody, refuseEncoding, retryAfter } from './response-body.js'
import { transportLimits, type HttpResponse, type TransportLimits, type HttpRequest } from './transport.js'
import { TokenBucket, type RateLimit } from './token-bucket.js'
import { TransportPool } from './transport-pool.js'
import { takeLines } from './watch-lines.js'

export interface ConnectOptions {
  /** holdfast's own, for the User-Agent. */
  readonly version: string
  readonly limits?: Partial<TransportLimits>
  /** The most requests that the client sends; absent: it sends all at once. */
  readonly rate?: RateLimit | undefined
  readonly observer?: ApiObserver | undefined
}

/**
 * A client of the API server that the credentials lead to; it closes them in the end. Nothing is opened before the first request. An agent may start before its kubeconfig
 * is there: every request rejects with ConnectionError 'credentials' meanwhile. Call `close` in the end: open connections keep a process alive.
 */
export function connect(credentials: Credentials, options: ConnectOptions): ApiClient {
  return new Connection(credentials, options)
}

/** A failure's body is a metav1.Status. */
const MAX_STATUS_BODY = 1024 * 1024

/** How often one request is refused unprocessed before it fails. */
const MAX_REFUSED = 3

interface Called {
  readonly answer: HttpResponse
  readonly deadline: Deadline
  readonly progress: ReadProgress
}

type CallLimits = Pick<RequestOptions, 'timeout' | 'signal'> & Pick<StreamOptions, 'attempt'>

const unobserved: ApiObserver = { requested() {}, throttled() {}, watches() {} }

class Connection implements ApiClient {
  readonly #limits: TransportLimits
  readonly #pool: TransportPool
  readonly #userAgent: string
  readonly #largeReads = new LargeReads(8, 128 * 1024)
  readonly #bucket: TokenBucket | undefined
  readonly #observer: ApiObserver
  #rejected: AccessSnapshot | undefined
  #inUse: AccessSnapshot | undefined
  /** The server's address, for messages. */
  #origin = ''
  #notAfter: Date | undefined
  #closed: ConnectionError | undefined

  constructor(
    private readonly credentials: Credentials,
    options: ConnectOptions,
  ) {
    this.#limits = { ...transportLimits, ...options.limits }
    this.#pool = new TransportPool(this.#limits)
    this.#bucket = options.rate && new TokenBucket(options.rate)
    this.#observer = options.observer ?? unobserved
    this.#userAgent = `holdfast/${options.version} (linux/${process.arch === 'x64' ? 'amd64' : process.arch})`
    // Credentials may rotate while nothing but silent watches goes on.
    credentials.changes.on('changed', (access) => this.#switchTo(access))
    credentials.follow()
  }

  get defaultNamespace(): string | undefined {
    return this.credentials.namespace
  }

  get connections(): number {
    return this.#pool.connections
  }

  clientCertificateNotAfter(): Date | undefined {
    return this.#notAfter
  }

  async renewal(signal: AbortSignal): Promise<void> {
    const [rejected, inUse] = [this.#rejected, this.#inUse]
    // Another request has found other credentials since the API server rejected these.
    if (rejected && inUse && !sameAccess(rejected, inUse)) return
    await once(this.credentials.changes, 'changed', { signal }).catch(() => undefined)
  }

  async get(path: string, query: Readonly<Record<string, string>>, options: RequestOptions): Promise<ApiResponse> {
    return this.#send(
      { method: 'GET', verb: options.verb ?? 'get', path, query, body: undefined, accept: options.accept },
      options,
    )
  }

  async send(method: 'POST' | 'PATCH', path: string, body: unknown, options: SendOptions): Promise<ApiResponse> {
    const verb = method === 'POST' ? 'create' : 'patch'
    const { apply, accept } = options
    const applied = apply && {
      // Where the API server is to warn of doubled keys, its default, it decodes the YAML twice (applyPatchToCurrentObject in apiserver's
      // handlers/patch.go); JSON.stringify doubles none. A field that the schema lacks is refused by the apply itself.
      query: { fieldManager: apply.manager, fieldValidation: 'Ignore', ...(apply.force && { force: 'true' }) },
      // JSON is YAML.
      type: 'application/apply-patch+yaml',
    }
    return this.#send({ method, verb, path, query: {}, body: JSON.stringify(body), accept, ...applied }, options)
  }

  async stream(path: string, query: Readonly<Record<string, string>>, options: StreamOptions): Promise<ApiStream> {
    const call = { method: 'GET', verb: 'watch', path, query, body: undefined, accept: options.accept } as const
    const { answer, deadline, progress } = await this.#call(call, options)
    const { signal } = deadline
    const what = describeCall(call)
    try {
      const head = { status: answer.status, retryAfter: retryAfter(answer.headers['retry-after']) }
      if (answer.status !== 200) {
        const bytes = await this.#readBody(answer, MAX_STATUS_BODY, what, deadline, progress)
        deadline.dispose()
        return {
          ...head,
          body: parseJson(bytes, what),
          ...this.#parties(call, answer, bytes),
          takeLines: () => Promise.resolve(),
          progress,
        }
      }
      const { foreign } = this.#parties(call, answer)
      if (foreign !== undefined) {
        answer.body.destroy()
        throw new ConnectionError(foreign, 'protocol')
      }
      deadline.met()
      this.#observer.watches(1)
      // The watch lives long, so it keeps none of the headers.
      const { body, broken } = answer
      body.once('close', () => {
        this.#observer.watches(-1)
        deadline.dispose()
      })
      const lines = { limit: this.#limits.line, what, signal, largeReads: this.#largeReads, progress }
      return {
        ...head,
        body: undefined,
        takeLines: (take, patience) => takeLines({ body, broken }, { ...lines, patience }, take),
        progress,
      }
    } catch (error) {
      deadline.dispose()
      throw error
    }
  }

  close(): Promise<void> {
    this.credentials.close()
    this.#closed ??= new ConnectionError('the client was closed', 'connection')
    this.#pool.destroy(this.#closed)
    this.#bucket?.close()
    return Promise.resolve()
  }

  async #send(call: Call, options: RequestOptions): Promise<ApiResponse> {
    const { answer, deadline, progress } = await this.#call(call, options)
    try {
      const bytes = await this.#readBody(answer, this.#limits.body, describeCall(call), deadline, progress)
      const after = retryAfter(answer.headers['retry-after'])
      const parties = this.#parties(call, answer, bytes)
      if (answer.status === 200 && parties.foreign !== undefined) throw new ConnectionError(parties.foreign, 'protocol')
      return {
        status: answer.status,
        retryAfter: after,
        date: readDate(answer.headers.date),
        body: parseJson(bytes, describeCall(call)),
        ...parties,
      }
    } finally {
      deadline.dispose()
    }
  }

  #readBody(
    answer: HttpResponse,
    limit: number,
    what: string,
    deadline: Deadline,
    progress: ReadProgress,
  ): Promise<Buffer> {
    const { signal } = deadline
    return readBody(answer, { limit, what, signal, place: this.#largeReads.place(signal, deadline), progress })
  }

  #parties({ path }: Call, answer: HttpResponse, bytes?: Buffer): Pick<ApiResponse, 'foreign' | 'anonymous'> {
    const foreign = foreignAnswer(answer, bytes)
    return {
      ...(foreign !== undefined && { foreign: `${this.#origin}${path}: ${foreign}` }),
      ...(this.#inUse && isAnonymous(this.#inUse) && { anonymous: true }),
    }
  }

  /** Sends a request; again if it was refused unprocessed. Its time starts when it may be sent. */
  async #call(call: Call, { timeout, signal, attempt }: CallLimits): Promise<Called> {
    for (let refused = 0; ;) {
      this.#observer.throttled((await this.#bucket?.take(attempt?.signal ?? signal)) ?? 0)
      const progress = new ReadProgress(() => this.#pool.received)
      const deadline = deadlineOf(describeCall(call), attempt ?? signal, timeout, progress)
      try {
        return { answer: await this.#authorized(call, deadline, progress), deadline, progress }
      } catch (error) {
        deadline.dispose()
        if (!(error instanceof NotProcessed)) throw error
        refused += 1
        if (refused > MAX_REFUSED) throw wrapConnectionError(this.#origin, error.cause ?? error)
      }
    }
  }

  /** Sends a request; once more with renewed credentials after a 401. */
  async #authorized(call: Call, deadline: Deadline, progress: ReadProgress): Promise<HttpResponse> {
    const { signal } = deadline
    const access = await this.#untimed(deadline, progress, this.#current(signal))
    const answer = await this.#attempt(access, call, signal)
    if (answer.status !== 401) return answer
    this.#rejected = access
    let next: AccessSnapshot
    try {
      next = await this.#untimed(deadline, progress, this.#current(signal, access))
    } catch (error) {
      // An answer without a reader keeps its place on the connection for ever.
      answer.body.destroy()
      throw error
    }
    if (sameAccess(next, access)) return answer
    answer.body.destroy()
    const again = await this.#attempt(next, call, signal)
    if (again.status === 401) this.#rejected = next
    return again
  }

  async #attempt(access: AccessSnapshot, call: Call, signal: AbortSignal): Promise<HttpResponse> {
    let answer: HttpResponse
    try {
      answer = await this.#transmit(access, call, signal)
    } catch (error) {
      const abandoned = signal.aborted && !(signal.reason instanceof ConnectionError)
      if (!abandoned) this.#observer.requested(call.verb, undefined)
      throw error
    }
    this.#observer.requested(call.verb, answer.status)
    return refuseEncoding(answer, describeCall(call))
  }

  async #transmit(access: AccessSnapshot, call: Call, signal: AbortSignal): Promise<HttpResponse> {
    const lease = await this.#pool.lease(access, signal)
    try {
      return await lease.transport.request(requestOf(access, call, this.#userAgent, signal), lease.release)
    } catch (error) {
      lease.release()
      // A slow answer may mean that the server is gone: find out before the next request does.
      if (signal.aborted) lease.transport.probe()
      throw error
    }
  }

  /** The time of a credential plugin is no silence of the API server. */
  async #untimed<Work>(deadline: Deadline, progress: ReadProgress, work: Promise<Work>): Promise<Work> {
    deadline.pause()
    try {
      return await work
    } finally {
      progress.begin()
      deadline.resume()
    }
  }

  async #current(signal: AbortSignal, rejected?: AccessSnapshot): Promise<AccessSnapshot> {
    if (this.#closed) throw this.#closed
    const work = rejected ? this.credentials.renew(rejected) : this.credentials.current()
    const seconds = this.#limits.credentials / 1000
    // A plugin has a shorter time, and its error names it; files on a disk that hangs have none.
    const late = new Deadline(
      this.#limits.credentials,
      signal,
      () =>
        new ConnectionError(
          `${this.credentials.origin}: the credentials did not come within ${seconds} s`,
          'credentials',
        ),
    )
    let access: AccessSnapshot
    try {
      access = await unlessAborted(work, late.signal)
    } catch (error) {
      if (late.signal.aborted) throw error
      throw new ConnectionError((error as Error).message, 'credentials', { cause: error })
    } finally {
      late.dispose()
    }
    this.#switchTo(access)
    return access
  }

  /** A connection with outdated credentials ends in good order. */
  #switchTo(access: AccessSnapshot): void {
    // A client that was closed while the credentials were read must not open anything.
    if (this.#closed) throw this.#closed
    const before = this.#inUse
    this.#inUse = access
    if (access.connectionId === before?.connectionId) return
    this.#origin = `${access.server.origin}${basePath(access.server)}`
    this.#notAfter = access.certificate && notAfter(access.certificate.chain)
    this.#pool.switchTo(access)
  }
}

function deadlineOf(
  what: string,
  caller: AbortSignal | AbortController | undefined,
  timeout: number,
  progress: ReadProgress,
): Deadline {
  const late = () => new ConnectionError(`${what}: ${progress.problem(timeout)}`, 'timeout')
  return new Deadline(timeout, caller, late, () => progress.moved())
}

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly verb: ApiVerb
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly accept?: string | undefined
  /** Media type of the body; default JSON, and of a PATCH a merge patch. */
  readonly type?: string | undefined
}

function describeCall({ method, path }: Call): string {
  return `${method} ${path}`
}

function requestOf(
  access: AccessSnapshot,
  { method, path, query, body, accept, type: given }: Call,
  userAgent: string,
  signal: AbortSignal,
): HttpRequest {
  const search = new URLSearchParams(query).toString()
  const type = given ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')
  return {
    method,
    // Joined: Node keeps it with the stream, and one string is smaller than its pieces, of which it would be made otherwise.
    path: [basePath(access.server), path, ...(search === '' ? [] : ['?', search])].join(''),
    headers: {
      accept: accept ?? 'application/json',
      'user-agent': userAgent,
      ...(body !== undefined && { 'content-type': type }),
      ...access.headers,
    },
    body,
    signal,
  }
}

/** Of a server whose API begins below its root; without a slash at the end. */
function basePath({ pathname }: URL): string {
  return pathname.replace(/\/+$/, '')
}
