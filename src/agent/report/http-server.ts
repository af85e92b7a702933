import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerAddress } from '../../config/types.js'

/** What the endpoints show. */
export interface Health {
  readiness(): Readiness
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

/**
 * Milliseconds that a connection stays open for the next request. Node's own default: it then ends a connection that has sent nothing; a
 * client that has begun a head has the rest of its time.
 */
const keepAlive = 5_000

/**
 * Node looks for connections over their time at an interval, with or without any: two wakeups a second of an agent at rest, or a limit that
 * is late. So each connection has a timer, and Node never looks: this is the longest that it takes.
 */
const unwatched = { requestTimeout: 0, headersTimeout: 0, connectionsCheckingInterval: 2 ** 31 - 1 }

/** Connections at a time: what a kubelet and a few scrapers need, many times over. */
const mostConnections = 64

/** Milliseconds from one computation of the metrics to the next: a thousand directories take tens of them. */
const metricsInterval = 1_000

/** Requests of one connection that wait for the answer to the one before: who sends more before it reads is no prober and no scraper. */
const mostWaiting = 4

/** Connections that came last, of them. */
const newest = 16

/**
 * Serves /livez, /readyz, /healthz and /metrics. That it answers at all is what /livez says: the loop turns. Rejects with the
 * system's error where the address cannot be had.
 */
export async function serveHealth(configured: ServerAddress, health: Health): Promise<HealthServer> {
  const metrics = atMostEach(metricsInterval, async () => {
    const { type, text } = await health.metrics()
    return { type, text: Buffer.from(text) }
  })
  const server = createServer({ ...unwatched, keepAliveTimeout: keepAlive })
  server.timeout = silence
  limitConnections(server, (request, response) => answer(request, response, health, metrics))
  await listen(server, configured)
  const bound = server.address() as AddressInfo
  return {
    address: { host: bound.address, port: bound.port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/**
 * Takes every newcomer. Beyond the limit another connection goes: a client that only holds connections, or fills them (any process of the
 * node may), cannot keep a prober out, as Node's own limit, which refuses newcomers, would.
 */
function limitConnections(server: Server, answer: Answering): void {
  // In the order in which they came.
  const connections = new Map<Socket, Connection>()
  server.on('connection', (socket: Socket) => {
    if (connections.size >= mostConnections) {
      const least = leastDeserving([...connections])
      if (least) {
        connections.delete(least)
        least.destroy()
      }
    }
    const late = endUnlessHead(socket, headTimeout)
    const connection: Connection = { answering: 0, turn: Promise.resolve(), late }
    connections.set(socket, connection)
    socket.once('close', () => {
      connections.delete(socket)
      clearTimeout(connection.late)
    })
  })
  server.on('request', (request, response) => {
    const { socket } = request
    const connection = connections.get(socket)
    if (!connection || socket.destroyed) return
    if (connection.answering > mostWaiting) {
      socket.destroy()
      return
    }
    connection.answering += 1
    clearTimeout(connection.late)
    response.once('close', () => {
      connection.answering -= 1
      // A client may send its next request before it has the answer to this one.
      if (connection.answering > 0 || socket.destroyed) return
      clearTimeout(connection.late)
      connection.late = endUnlessHead(socket, keepAlive + headTimeout)
    })
    connection.turn = connection.turn.then(async () => {
      if (socket.destroyed) return
      const closed = new Promise((resolve) => response.once('close', resolve))
      await answer(request, response).catch(() => response.destroy())
      await closed
    })
  })
}

/**
 * The oldest connection with several requests under way; or without any, but for the newest, whose requests may not have been read yet; or the
 * oldest of all.
 */
function leastDeserving(all: readonly (readonly [Socket, Connection])[]): Socket | undefined {
  const [socket] =
    all.find(([, { answering }]) => answering > 1) ??
    all.slice(0, -newest).find(([, { answering }]) => answering === 0) ??
    all[0] ??
    []
  return socket
}

type Answering = (request: IncomingMessage, response: ServerResponse) => Promise<void>

interface Connection {
  /** Requests without an answer yet. */
  answering: number
  /** Of its next request, after the answers to those before. */
  turn: Promise<void>
  /** Ends it. */
  late: NodeJS.Timeout
}

/** Ends the connection after so many milliseconds, as Node does where a request's head is late. */
function endUnlessHead(socket: Socket, milliseconds: number): NodeJS.Timeout {
  const late = (): void => {
    socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n', () => socket.destroy())
  }
  return setTimeout(late, milliseconds).unref()
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
  readonly text: string | Buffer
  readonly type?: string
}

type Metrics = () => Promise<{ readonly type: string; readonly text: Buffer }>

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  health: Health,
  metrics: Metrics,
): Promise<void> {
  const reads = request.method === 'GET' || request.method === 'HEAD'
  const page = reads
    ? await pageFor(request, health, metrics)
    : { status: 405, text: 'this server answers only GET and HEAD\n' }
  if (!reads) response.setHeader('allow', 'GET, HEAD')
  response.writeHead(page.status, {
    'content-type': page.type ?? 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : page.text)
}

async function pageFor({ url = '', headers }: IncomingMessage, health: Health, metrics: Metrics): Promise<Page> {
  if (headers.host !== undefined && !isOwn(headers.host, health.hosts())) {
    return { status: 421, text: 'this server has no such name: add it to server.hosts of the configuration\n' }
  }
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
function isOwn(host: string, names: readonly string[]): boolean {
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
    next ??= (wait === 0 ? Promise.resolve() : sleep(wait, undefined, { ref: false })).then(() => {
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

export interface Readiness {
  readonly ready: boolean
  /** One line for each directory that counts, in Kubernetes' own form: `[+]PATH ok`, `[-]PATH Reason: message`. */
  readonly lines: readonly string[]
}

/**
 * An agent is ready if every required directory is intact on the disk. Neither an unreachable source nor a hook matters: consumers can use
 * intact content.
 */
export function readiness(directories: Iterable<ReadinessFacts>): Readiness {
  const counting = [...directories].filter(({ required }) => required)
  return {
    ready: counting.every(({ intact }) => intact),
    lines: counting.map(({ path, intact, reason, message }) =>
      intact ? `[+]${path} ok` : `[-]${path} ${reason}: ${message}`,
    ),
  }
}
