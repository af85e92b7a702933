/** An API server that has collections: lists them in pages, and has watches that a test holds up, breaks and ends. */
import type { Test } from 'tap'
import { managerOf, type ReportedDirectory, type ReportedObject, type ReportStatus } from '../../src/fleet/types.js'
import type { ApiClient } from '../../src/kubernetes/connection/client.js'
import type { Log } from '../../src/log.js'
import { beginWatch, json, refuse, type ApiServer, type Reply, type Seen } from '../kubernetes/connection/api-server.js'
import { start } from '../kubernetes/connection/connected.js'

interface Item {
  readonly metadata: { readonly name: string; readonly [field: string]: unknown }
  readonly [field: string]: unknown
}

interface Event {
  readonly version: number
  readonly path: string
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: Item
}

export const nodesPath = '/api/v1/nodes'
export const reportsPath = '/apis/holdfast.dev/v1alpha1/nodepublications'
export const secretsPath = '/api/v1/namespaces/ns/secrets'
export const wanted: ReportedObject = { kind: 'Secret', namespace: 'ns', name: 'ca', uid: 'u1', resourceVersion: '100' }

export class FleetServer {
  readonly warnings: string[] = []
  /** Objects of a page, at most. */
  pageSize = 500
  /** Answers instead of the server, if it returns true. */
  answer: (seen: Seen, reply: Reply, url: URL) => boolean = () => false
  readonly #refusals: { readonly path: string; readonly verb: 'list' | 'watch'; readonly code: number }[] = []
  /** Milliseconds from this machine's clock to the server's. */
  ahead = 0
  #version = 1_000
  readonly #items = new Map<string, Map<string, Item>>()
  readonly #events: Event[] = []
  readonly #watches = new Map<Reply, string>()
  readonly #heldUp = new Set<string>()
  #running: ApiServer | undefined
  #api: ApiClient | undefined

  static async start(t: Test): Promise<FleetServer> {
    const server = new FleetServer()
    const { api, running } = await start(t, { handler: (seen, reply) => server.#handle(seen, reply) })
    server.#api = api
    server.#running = running
    return server
  }

  get api(): ApiClient {
    if (!this.#api) throw new Error('it has not started')
    return this.#api
  }

  get log(): Log {
    return { debug() {}, info() {}, error() {}, warn: (_, message) => void this.warnings.push(message) }
  }

  /** Requests for this collection: `list` or `watch`, with their query. */
  requests(path: string, verb?: 'list' | 'watch'): URL[] {
    const urls = (this.#running?.requests ?? []).map((seen) => new URL(seen.path, 'https://server'))
    return urls.filter((url) => url.pathname === path && (verb === undefined || (verb === 'watch') === isWatch(url)))
  }

  /** The media types that were asked for. */
  accepted(path: string): (string | string[] | undefined)[] {
    return (this.#running?.requests ?? [])
      .filter((one) => one.path.startsWith(path))
      .map(({ headers }) => headers.accept)
  }

  /** The collections that were listed, in this order. */
  get listed(): string[] {
    const urls = (this.#running?.requests ?? []).map((seen) => new URL(seen.path, 'https://server'))
    return urls.filter((url) => !isWatch(url)).map(({ pathname }) => pathname)
  }

  cut(): void {
    this.#running?.cut()
  }

  put(path: string, item: Item): void {
    const items = this.#items.get(path) ?? new Map<string, Item>()
    this.#items.set(path, items)
    const type = items.has(item.metadata.name) ? 'MODIFIED' : 'ADDED'
    this.#version += 1
    const metadata = { resourceVersion: String(this.#version), ...item.metadata }
    const object = { ...item, metadata }
    items.set(item.metadata.name, object)
    this.#emit({ version: this.#version, path, type, object })
  }

  remove(path: string, name: string): void {
    const object = this.#items.get(path)?.get(name)
    if (object === undefined) throw new Error(`there is no ${name}`)
    this.#items.get(path)?.delete(name)
    this.#version += 1
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) }
    this.#emit({ version: this.#version, path, type: 'DELETED', object: { ...object, metadata } })
  }

  /** Lists have what comes from now on, watches do not. */
  holdUp(path: string): void {
    this.#heldUp.add(path)
  }

  goOn(path: string): void {
    this.#heldUp.delete(path)
    this.endWatches(path)
  }

  /** Sends a line to the watches of a collection. */
  send(path: string, line: unknown): void {
    for (const [reply, watched] of this.#watches) if (watched === path) write(reply, line)
  }

  /** The next such request is refused. */
  refuseOnce(path: string, verb: 'list' | 'watch', code: number): void {
    this.#refusals.push({ path, verb, code })
  }

  /** Ends the watches of a collection, as the server does after its timeout. */
  endWatches(path: string): void {
    for (const [reply, watched] of this.#watches) {
      if (watched !== path) continue
      this.#watches.delete(reply)
      end(reply)
    }
  }

  putNode(name: string, more: { readonly uid?: string; readonly boot?: string } = {}): void {
    const { uid = `uid-${name}`, boot = `boot-${name}` } = more
    this.put(nodesPath, { metadata: { name, uid }, status: { nodeInfo: { bootID: boot } } })
  }

  putSecret(more: { readonly uid?: string; readonly resourceVersion?: string } = {}): void {
    const { name, namespace, uid, resourceVersion } = { ...wanted, ...more }
    this.put(secretsPath, { metadata: { name, namespace, uid, resourceVersion } })
  }

  putReport(name: string, change: ReportChange = {}): void {
    this.put(reportsPath, reportOf(name, { at: new Date(Date.now() + this.ahead), ...change }))
  }

  #emit(event: Event): void {
    this.#events.push(event)
    if (!this.#heldUp.has(event.path)) this.send(event.path, event)
  }

  #handle(seen: Seen, reply: Reply): void {
    const url = new URL(seen.path, 'https://server')
    reply.setHeader('date', new Date(Date.now() + this.ahead).toUTCString())
    const verb = isWatch(url) ? 'watch' : 'list'
    const index = this.#refusals.findIndex((one) => one.path === url.pathname && one.verb === verb)
    const [refusal] = index < 0 ? [] : this.#refusals.splice(index, 1)
    if (refusal) return void refuse(reply, refusal.code, 'refused')
    if (this.answer(seen, reply, url)) return
    const path = url.pathname
    if (isWatch(url)) {
      const from = Number(url.searchParams.get('resourceVersion'))
      const missed = this.#events.filter((event) => event.path === path && event.version > from)
      this.#watches.set(reply, path)
      reply.on('close', () => this.#watches.delete(reply))
      beginWatch(reply, ...(this.#heldUp.has(path) ? [] : missed))
      return
    }
    const all = [...(this.#items.get(path)?.values() ?? [])]
    const at = Number(url.searchParams.get('continue') ?? 0)
    const next = at + Math.min(this.pageSize, Number(url.searchParams.get('limit') ?? Infinity))
    const metadata = { resourceVersion: String(this.#version), ...(next < all.length && { continue: String(next) }) }
    json(reply, 200, { kind: 'List', metadata, items: all.slice(at, next) })
  }
}

export interface ReportChange extends Partial<Pick<ReportStatus, 'nodeUID' | 'bootID' | 'agentVersion' | 'truncated'>> {
  readonly at?: Date
  readonly directories?: readonly ReportedDirectory[]
  readonly summary?: Partial<ReportStatus['summary']>
  /** Others that have written to it. */
  readonly managedFields?: readonly object[]
}

export const directory: ReportedDirectory = {
  path: '/a',
  state: 'Current',
  reason: 'Published',
  sequence: 3,
  objects: [wanted],
}

/** The report of a node as the API server has it: each directory current. */
function reportOf(name: string, change: ReportChange = {}): Item {
  const { at = new Date(), directories = [directory], summary, managedFields = [], ...more } = change
  const agentID = `agent-${name}`
  const count = (state: ReportedDirectory['state']): number => directories.filter((each) => each.state === state).length
  const own = { manager: managerOf(agentID), subresource: 'status', time: at.toISOString() }
  const sums = { current: count('Current'), waiting: count('Waiting'), held: count('Held'), failed: count('Failed') }
  const status: ReportStatus = {
    // A node's clock may be wrong by years.
    observedAt: '2020-01-01T00:00:00Z',
    nodeUID: `uid-${name}`,
    bootID: `boot-${name}`,
    agentID,
    agentVersion: '1',
    configuration: 'sha256:c',
    summary: { directories: directories.length, ...sums, ...summary },
    conditions: [
      { type: 'Ready', status: 'True', reason: 'AllCurrent', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
    directories,
    ...more,
  }
  return { metadata: { name, managedFields: [own, ...managedFields] }, status }
}

function isWatch(url: URL): boolean {
  return url.searchParams.get('watch') === '1'
}

function write(reply: Reply, line: unknown): void {
  ;(reply as NodeJS.WritableStream).write(`${JSON.stringify(line)}\n`)
}

function end(reply: Reply): void {
  ;(reply as NodeJS.WritableStream).end()
}
