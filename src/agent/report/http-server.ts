import { sleep } from '../../deadline.js'
import { STATUS_CODES } from 'node:http'
import { createServer, isIP, type AddressInfo, type Server, type Socket } from 'node:net'
import type { ServerAddress } from '../../config/types.js'

/** What the endpoints show. */
export interface Health {
  readiness(): ReadyzAnswer
  metrics(): Promise<{ type: string; text: string }>
  /** Names by which a request may call this server, beside addresses and `localhost`. */
  hosts(): readonly string[]
}

export interface HealthServer {
  readonly address: ServerAddress
  close(): Promise<void>
}

/** Milliseconds without a byte, while a client does not read its answer: slower than this is no prober and no scraper. */
const silence = 10_000

/** Milliseconds from the connection to the end of the request's head. */
const headTimeout = 2_000

/** Bytes of a head, as Node's own server has it. */
const longestHead = 16_384

/** Connections at a time: what a kubelet and a few scrapers need, many times over. */
const mostConnections = 64

/** Milliseconds from one computation of the metrics to the next: a thousand directories take tens of them. */
const metricsInterval = 1_000

/** Connections that came last, of them. */
const newest = 16

/**
 * Serves /livez, /readyz, /healthz and /metrics. That it answers at all is what /livez says: the loop turns. Rejects with the
 * system's error where the address cannot be had.
 *
 * The agent gives each connection one answer. Node's server parses all requests of a chunk before it can end their connection: thousands,
 * of anybody on the node. So the agent reads nothing behind the first head.
 */
export async function serveHealth(configured: ServerAddress, health: Health): Promise<HealthServer> {
  const metrics = atMostEach(metricsInterval, async () => {
    const { type, text } = await health.metrics()
    return { type, text: Buffer.from(text) }
  })
  // In the order in which they came; whether the request has.
  const connections = new Map<Socket, boolean>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    closeLeast(connections)
    connections.set(socket, false)
    socket.on('close', () => connections.delete(socket)).on('error', () => {})
    socket.setTimeout(silence, () => socket.destroy())
    readHead(socket, (head) => {
      connections.set(socket, true)
      answer(head, health, metrics).then(
        (bytes) => endWith(socket, bytes),
        () => socket.destroy(),
      )
    })
  })
  await listen(server, configured)
  const bound = server.address() as AddressInfo
  return {
    address: { host: bound.address, port: bound.port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of connections.keys()) socket.destroy()
      }),
  }
}

/**
 * Takes every newcomer. Beyond the limit another connection goes: a client that only holds connections, or fills them (any process of the
 * node may), cannot keep a prober out, as Node's own limit, which refuses newcomers, would. It is the oldest without a request, but for the
 * newest, whose requests may not have been read yet; or the oldest of all.
 */
function closeLeast(connections: Map<Socket, boolean>): void {
  if (connections.size < mostConnections) return
  const all = [...connections]
  const [least] = all.slice(0, -newest).find(([, asked]) => !asked) ?? all[0] ?? []
  if (least === undefined) return
  connections.delete(least)
  least.destroy()
}

/** Reads until the end of a request's head, and nothing from then on; ends the connection where none comes in time. */
function readHead(socket: Socket, done: (head: string) => void): void {
  const late = setTimeout(() => endWith(socket, page({ status: 408 })), headTimeout).unref()
  const ended = (): void => void socket.destroy()
  let head = ''
  const read = (chunk: Buffer): void => {
    const from = Math.max(0, head.length - 3)
    head += chunk.toString('latin1', 0, longestHead - head.length)
    const end = head.indexOf('\r\n\r\n', from)
    if (end === -1 && head.length < longestHead) return
    clearTimeout(late)
    socket.off('data', read).off('end', ended).pause()
    if (end === -1) endWith(socket, page({ status: 431 }))
    else done(head.slice(0, end))
  }
  socket
    .on('data', read)
    .on('end', ended)
    .once('close', () => clearTimeout(late))
}

function endWith(socket: Socket, bytes: Buffer): void {
  socket.write(bytes)
  socket.destroySoon()
}

function listen(server: Server, { host, port }: ServerAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.removeListener('error', reject)
      // A connection that cannot be accepted (EMFILE) is the prober's loss, not the end of the agent.
      server.on('error', () => {})
      resolve()
    })
  })
}

interface Page {
  readonly status: number
  readonly text?: string | Buffer
  readonly type?: string
}

type MetricsPage = () => Promise<{ readonly type: string; readonly text: Buffer }>

async function answer(head: string, health: Health, metrics: MetricsPage): Promise<Buffer> {
  const [first = '', ...fields] = head.trimStart().split('\r\n')
  const [, method, url = '', minor] = /^([A-Z]+) (\S+) HTTP\/1\.([01])$/.exec(first) ?? []
  const hosts = fields.filter((field) => /^host:/i.test(field)).map((field) => field.slice('host:'.length).trim())
  const [host] = hosts
  if (method === undefined || hosts.length > 1 || (host === undefined && minor === '1')) return page({ status: 400 })
  if (method !== 'GET' && method !== 'HEAD') {
    return page({ status: 405, text: 'this server answers only GET and HEAD\n' }, { allow: 'GET, HEAD' })
  }
  if (host !== undefined && !isOwnHost(host, health.hosts())) {
    return page({ status: 421, text: 'this server has no such name: add it to server.hosts of the configuration\n' })
  }
  return page(await pageAt(url, health, metrics), {}, method === 'GET')
}

function page(
  { status, text = '', type = 'text/plain; charset=utf-8' }: Page,
  more: Readonly<Record<string, string>> = {},
  hasBody = true,
): Buffer {
  const body = Buffer.from(text)
  const fields = {
    ...more,
    'content-type': type,
    'cache-control': 'no-store',
    date: new Date().toUTCString(),
    connection: 'close',
    'content-length': body.length,
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`)
  return hasBody ? Buffer.concat([head, body]) : head
}

async function pageAt(url: string, health: Health, metrics: MetricsPage): Promise<Page> {
  switch (url.split('?')[0] ?? '') {
    case '/livez':
    case '/healthz':
      return { status: 200, text: 'ok\n' }
    case '/readyz': {
      const { ready, lines } = health.readiness()
      const text = [...lines, ready ? 'readyz check passed' : 'readyz check failed']
      return { status: ready ? 200 : 503, text: `${text.join('\n')}\n` }
    }
    case '/metrics':
      return { status: 200, ...(await metrics()) }
    default:
      return { status: 404, text: 'not found; this server has /livez, /readyz, /healthz and /metrics\n' }
  }
}

/**
 * Whether a Host header names this server. A page that a browser on this network has loaded can make its own name lead here, and would
 * read the answers.
 */
function isOwnHost(host: string, names: readonly string[]): boolean {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::[0-9]*)?$/.exec(host) ?? []
  const name = (bracketed ?? plain).toLowerCase()
  return isIP(name) !== 0 || ['localhost', ...names].some((own) => own.toLowerCase() === name)
}

/** Calls that come together share one computation, which begins after each of them, and so long after the one before. */
function atMostEach<Result>(milliseconds: number, compute: () => Promise<Result>): () => Promise<Result> {
  let begun = -Infinity
  let next: Promise<Result> | undefined
  return () => {
    const wait = Math.max(0, begun + milliseconds - performance.now())
    next ??= (wait === 0 ? Promise.resolve() : sleep(wait, { ref: false })).then(() => {
      begun = performance.now()
      next = undefined
      return compute()
    })
    return next
  }
}

/** What readiness needs to know of a directory. */
interface ReadinessFacts {
  readonly path: string
  /** It holds at least one object that is not optional. */
  readonly required: boolean
  /** The disk holds the content of its record, durably: published now or before a restart. */
  readonly intact: boolean
  readonly reason: string
  readonly message: string
}

export interface ReadyzAnswer {
  readonly ready: boolean
  /** One line for each directory that counts, in Kubernetes' own form: `[+]PATH ok`, `[-]PATH Reason: message`. */
  readonly lines: readonly string[]
}

/**
 * An agent is ready if every required directory is intact on the disk. Neither an unreachable source nor a hook matters: consumers can use
 * intact content.
 */
export function readiness(directories: Iterable<ReadinessFacts>): ReadyzAnswer {
  const counting = [...directories].filter(({ required }) => required)
  return {
    ready: counting.every(({ intact }) => intact),
    lines: counting.map(({ path, intact, reason, message }) =>
      intact ? `[+]${path} ok` : `[-]${path} ${reason}: ${message}`,
    ),
  }
}
