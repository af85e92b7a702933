import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { ServerConfiguration } from '../../config/types.js'

/** What the endpoints show. */
export interface Health {
  readiness(): Readiness
  metrics(): Promise<{ type: string; text: string }>
}

export interface HealthServer {
  readonly address: ServerConfiguration
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

/**
 * Serves /livez, /readyz, /healthz and /metrics. That it answers at all is what /livez says: the loop turns. Rejects with the
 * system's error where the address cannot be had.
 */
export async function serveHealth(address: ServerConfiguration, health: Health): Promise<HealthServer> {
  const server = createServer({ ...unwatched, keepAliveTimeout: keepAlive }, (request, response) => {
    answer(request, response, health).catch(() => response.destroy())
  })
  server.timeout = silence
  limitConnections(server)
  await listen(server, address)
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
 * Takes every newcomer. Beyond the limit, the oldest connection goes that has no request under way, or the oldest of all: who only
 * holds connections (any process of the node may) cannot keep a prober out, as the limit of Node's own, which refuses newcomers,
 * would.
 */
function limitConnections(server: Server): void {
  // In the order in which they came.
  const connections = new Map<Socket, Connection>()
  server.on('connection', (socket: Socket) => {
    if (connections.size >= mostConnections) {
      const all = [...connections]
      const [oldest] = all.find(([, { answering }]) => answering === 0) ?? all[0] ?? []
      if (oldest) {
        connections.delete(oldest)
        oldest.destroy()
      }
    }
    const connection: Connection = { answering: 0, late: endUnlessHead(socket, headTimeout) }
    connections.set(socket, connection)
    socket.once('close', () => {
      connections.delete(socket)
      clearTimeout(connection.late)
    })
  })
  server.on('request', ({ socket }, response) => {
    const connection = connections.get(socket)
    if (!connection) return
    connection.answering += 1
    clearTimeout(connection.late)
    response.once('close', () => {
      connection.answering -= 1
      // A client may send its next request before it has the answer to this one.
      if (connection.answering > 0 || socket.destroyed) return
      clearTimeout(connection.late)
      connection.late = endUnlessHead(socket, keepAlive + headTimeout)
    })
  })
}

interface Connection {
  /** Requests without an answer yet. */
  answering: number
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

function listen(server: Server, { host, port }: ServerConfiguration): Promise<void> {
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
  readonly text: string
  readonly type?: string
}

async function answer(request: IncomingMessage, response: ServerResponse, health: Health): Promise<void> {
  const reads = request.method === 'GET' || request.method === 'HEAD'
  const page = reads
    ? await pageAt(request.url?.split('?')[0] ?? '', health)
    : { status: 405, text: 'this server answers only GET and HEAD\n' }
  if (!reads) response.setHeader('allow', 'GET, HEAD')
  response.writeHead(page.status, {
    'content-type': page.type ?? 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : page.text)
}

async function pageAt(path: string, health: Health): Promise<Page> {
  switch (path) {
    case '/livez':
    case '/healthz':
      return { status: 200, text: 'ok\n' }
    case '/readyz': {
      const { ready, lines } = health.readiness()
      const text = [...lines, ready ? 'readyz check passed' : 'readyz check failed']
      return { status: ready ? 200 : 503, text: `${text.join('\n')}\n` }
    }
    case '/metrics':
      return { status: 200, ...(await health.metrics()) }
    default:
      return { status: 404, text: 'not found; this server has /livez, /readyz, /healthz and /metrics\n' }
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
