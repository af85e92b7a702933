/**
 * A model of an API server on its etcd, as far as one watch for each object can tell, behind a real HTTP/2 server: a history of
 * Secrets with one revision counter, lists and watches that may lag behind it, bookmarks, and a restore from a backup.
 */
import type { ServerResponse } from 'node:http'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { json, type Reply } from '../../kubernetes/connection/api-server.js'
import { serving } from '../../kubernetes/connection/connected.js'

export interface ModelRequest {
  readonly verb: 'get' | 'list' | 'watch'
  readonly name: string
  readonly path: string
  readonly query: URLSearchParams
  readonly at: number
}

interface Change {
  readonly revision: number
  readonly name: string
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: ModelObject
}

export interface ModelObject {
  readonly metadata: Record<string, unknown> & { name: string; uid: string; resourceVersion: string }
  readonly data?: unknown
}

interface Watcher {
  readonly name: string
  readonly reply: Reply
  position: number
}

/**
 * Below Linux's ephemeral ports (32768 and up): there, while the server is down, a client that tries to connect to it could be
 * given the very port as its own, and meet itself.
 */
function portBelowEphemeral(): number {
  return 20_000 + Math.floor(Math.random() * 12_000)
}

/** False where another server has the port. */
function listens(server: Http2SecureServer, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const taken = () => resolve(false)
    server.once('error', taken)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', taken)
      resolve(true)
    })
  })
}

export class ModelCluster {
  revision = 1000
  streaming: 'supported' | 'refused' | 'ignored' = 'supported'
  /** Lists and watches show the state of so many revisions ago; a GET by name does not. */
  lag = 0
  /** Ends watches when their time is over. */
  obeysTimeouts = true
  /** Answers a request in its own way, and returns true; or returns false. */
  intercept: (request: ModelRequest, reply: Reply) => boolean = () => false
  readonly requests: ModelRequest[] = []
  readonly #history: Change[] = []
  readonly #watchers = new Set<Watcher>()
  readonly #sessions = new Set<ServerHttp2Session>()
  #server: Http2SecureServer | undefined
  #port = 0
  #uids = 0

  get url(): string {
    return `https://127.0.0.1:${this.#port}`
  }

  get watching(): number {
    return this.#watchers.size
  }

  /** Serves, on the same port as before. */
  async start(): Promise<void> {
    const server = createSecureServer({ key: serving.key, cert: serving.certificate }, (request, reply) => {
      this.#answer(request.url, reply)
    })
    server.on('session', (session) => {
      this.#sessions.add(session)
      session.on('error', () => undefined)
      session.once('close', () => this.#sessions.delete(session))
    })
    while (!(await listens(server, this.#port || portBelowEphemeral())) && this.#port === 0);
    if (!server.listening) throw new Error(`port ${this.#port} is taken`)
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
  }

  /** Ends as a killed process does. */
  async stop(): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server?.close(resolve))
  }

  /** Breaks all connections. */
  cut(): void {
    this.#watchers.clear()
    for (const session of this.#sessions) session.destroy()
  }

  /** Leaves the streams open, and never writes to them again. */
  forgetWatches(): void {
    this.#watchers.clear()
  }

  /** Ends the object's watches in order. */
  endWatches(name: string): void {
    for (const watcher of [...this.#watchers].filter((each) => each.name === name)) {
      this.#watchers.delete(watcher)
      watcher.reply.end()
    }
  }

  put(name: string, content: string, metadata: Record<string, unknown> = {}): ModelObject {
    const data = { a: Buffer.from(content).toString('base64') }
    return this.putRaw(name, { data }, metadata)
  }

  putRaw(name: string, body: object, metadata: Record<string, unknown> = {}): ModelObject {
    const before = this.#at(name, this.revision)
    const uid = before?.metadata.uid ?? `uid-${(this.#uids += 1)}`
    const resourceVersion = String(this.revision + 1)
    const object = {
      metadata: { name, namespace: 'kube-system', uid, resourceVersion, ...metadata },
      ...body,
    }
    this.#commit({ name, type: before ? 'MODIFIED' : 'ADDED', object })
    return object
  }

  delete(name: string): void {
    const before = this.#at(name, this.revision)
    if (!before) return
    const metadata = { ...before.metadata, resourceVersion: String(this.revision + 1) }
    this.#commit({ name, type: 'DELETED', object: { ...before, metadata } })
  }

  /** Goes back to a backup. The API server is restarted with its etcd, unless the test says otherwise. */
  restore(revision: number, { cut = true } = {}): void {
    while ((this.#history.at(-1)?.revision ?? 0) > revision) this.#history.pop()
    this.revision = revision
    if (cut) this.cut()
  }

  current(name: string): ModelObject | undefined {
    return this.#at(name, this.revision)
  }

  /** Delivers what lagged behind. */
  flush(): void {
    for (const watcher of this.#watchers) this.#deliver(watcher)
  }

  bookmark(): void {
    for (const watcher of this.#watchers) {
      // A bookmark says that all up to its version has been sent.
      this.#deliver(watcher)
      if (this.#visible < watcher.position) continue
      watcher.position = this.#visible
      this.#send(watcher, 'BOOKMARK', { metadata: { resourceVersion: String(this.#visible) } })
    }
  }

  /** Sends a line of any kind to the object's watches. */
  sendLine(name: string, line: string): void {
    for (const watcher of this.#watchers) {
      if (watcher.name === name) (watcher.reply as ServerResponse).write(`${line}\n`)
    }
  }

  get #visible(): number {
    return Math.max(this.revision - this.lag, 0)
  }

  #commit(change: Omit<Change, 'revision'>): void {
    this.revision += 1
    this.#history.push({ ...change, revision: this.revision })
    this.flush()
  }

  #at(name: string, revision: number): ModelObject | undefined {
    const last = this.#history.findLast((change) => change.name === name && change.revision <= revision)
    return last?.type === 'DELETED' ? undefined : last?.object
  }

  #answer(url: string, reply: Reply): void {
    const { pathname, searchParams: query } = new URL(url, 'https://model')
    const selector = query.get('fieldSelector')
    const name = selector?.replace('metadata.name=', '') ?? pathname.split('/').at(-1) ?? ''
    const verb = query.has('watch') ? 'watch' : selector === null ? 'get' : 'list'
    const request = { verb, name, path: pathname, query, at: performance.now() } as const
    this.requests.push(request)
    if (!this.intercept(request, reply)) this.answer(request, reply)
  }

  /** As the cluster does by itself, unless `intercept` has answered. */
  answer({ verb, name, query }: ModelRequest, reply: Reply): void {
    if (verb === 'watch') {
      this.#watch(name, query, reply)
      return
    }
    if (verb === 'list') {
      this.#list(name, reply)
      return
    }
    const object = this.#at(name, this.revision)
    if (object) json(reply, 200, { kind: 'Secret', ...object })
    else {
      const details = { name, kind: 'secrets' }
      json(reply, 404, { kind: 'Status', code: 404, reason: 'NotFound', details, message: `"${name}" not found` })
    }
  }

  #list(name: string, reply: Reply): void {
    const object = this.#at(name, this.#visible)
    const metadata = { resourceVersion: String(this.#visible) }
    json(reply, 200, { kind: 'SecretList', metadata, items: object ? [object] : null })
  }

  #watch(name: string, query: URLSearchParams, reply: Reply): void {
    const initial = query.get('sendInitialEvents') === 'true'
    if (initial && this.streaming === 'refused') {
      json(reply, 422, { kind: 'Status', code: 422, message: 'sendInitialEvents: Forbidden' })
      return
    }
    const response = reply as ServerResponse
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const from = query.get('resourceVersion')
    const watcher = { name, reply, position: from === null ? this.#visible : Number(from) }
    this.#watchers.add(watcher)
    response.on('close', () => this.#watchers.delete(watcher))
    if (from === null) {
      const object = this.#at(name, watcher.position)
      if (object) this.#send(watcher, 'ADDED', object)
      const annotations = { 'k8s.io/initial-events-end': 'true' }
      const metadata = { resourceVersion: String(watcher.position), annotations }
      if (initial && this.streaming === 'supported') this.#send(watcher, 'BOOKMARK', { metadata })
    }
    this.#deliver(watcher)
    const seconds = Number(query.get('timeoutSeconds'))
    const timer = setTimeout(() => this.obeysTimeouts && response.end(), seconds * 1000)
    response.on('close', () => clearTimeout(timer))
  }

  /** As a watch cache does it: it sends no change at or below the position, even if the position is in the future. */
  #deliver(watcher: Watcher): void {
    for (const change of this.#history) {
      if (change.name !== watcher.name || change.revision <= watcher.position) continue
      if (change.revision > this.#visible) break
      this.#send(watcher, change.type, change.object)
      watcher.position = change.revision
    }
  }

  #send(watcher: Watcher, type: string, object: unknown): void {
    ;(watcher.reply as ServerResponse).write(`${JSON.stringify({ type, object })}\n`)
  }
}
