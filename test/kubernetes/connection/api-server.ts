import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Pair } from './certificates.js'

/** A server that speaks as the API server does: TLS with ALPN, and client certificates if there is a `clientAuthority`. */
export interface ApiServer {
  readonly url: string
  readonly port: number
  readonly sessions: Set<ServerHttp2Session>
  /** Connections that were ever accepted. */
  readonly accepted: () => number
  readonly requests: Seen[]
  /** Destroys every connection, without a word. */
  readonly cut: () => void
  readonly close: () => Promise<void>
}

/** A request as the server saw it. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly httpVersion: string
  /** Common name of the client certificate. */
  readonly client: string | undefined
  readonly body: string
}

export type Reply = Http2ServerResponse | ServerResponse
export type Handler = (seen: Seen, reply: Reply) => void

export interface ServerOptions {
  readonly serving?: Pair
  readonly clientAuthority?: string
  readonly protocol?: 'h2' | 'https' | 'http'
  readonly maxConcurrentStreams?: number
  readonly handler?: Handler
}

export async function startServer(options: ServerOptions): Promise<ApiServer> {
  const { serving, clientAuthority, protocol = 'h2', maxConcurrentStreams } = options
  const handler = options.handler ?? ((_, reply) => json(reply, 200, { kind: 'SecretList', items: [] }))
  const requests: Seen[] = []
  const sessions = new Set<ServerHttp2Session>()
  const sockets = new Set<Socket>()
  let accepted = 0
  const listener = (request: IncomingMessage | Http2ServerRequest, reply: Reply): void => {
    // An h2 request hides its socket behind a proxy; the client's certificate is as readable.
    const socket = ('stream' in request ? request.stream.session?.socket : request.socket) as TLSSocket | undefined
    const peer = clientAuthority === undefined ? undefined : socket?.getPeerCertificate()
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const seen: Seen = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        httpVersion: request.httpVersion,
        client: peer === undefined ? undefined : String(peer.subject.CN),
        body: Buffer.concat(chunks).toString(),
      }
      requests.push(seen)
      handler(seen, reply)
    })
  }
  const tls = {
    key: serving?.key,
    cert: serving?.certificate,
    ...(clientAuthority !== undefined && {
      ca: clientAuthority,
      requestCert: true,
      rejectUnauthorized: true,
    }),
  }
  let server: Server | Http2SecureServer
  if (protocol === 'http') server = createPlain(listener)
  else if (protocol === 'https') server = createHttps(tls, listener)
  else server = createSecureServer({ ...tls, settings: maxConcurrentStreams ? { maxConcurrentStreams } : {} }, listener)
  server.on('connection', (socket: Socket) => {
    accepted += 1
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    session.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${protocol === 'http' ? 'http' : 'https'}://127.0.0.1:${port}`,
    port,
    sessions,
    accepted: () => accepted,
    requests,
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
    close: () => {
      for (const session of sessions) session.destroy()
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

export function json(reply: Reply, status: number, body: unknown, headers: Record<string, string> = {}): void {
  // The two classes differ in types alone.
  const response = reply as ServerResponse
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

/** Begins a watch: the head, and these lines; it stays open. */
export function beginWatch(reply: Reply, ...lines: unknown[]): void {
  const response = reply as ServerResponse
  response.writeHead(200, { 'content-type': 'application/json' })
  response.flushHeaders()
  for (const line of lines) response.write(`${JSON.stringify(line)}\n`)
}

/** Refuses a request as the API server does. */
export function refuse(reply: Reply, code: number, message: string, headers: Record<string, string> = {}): true {
  json(reply, code, { kind: 'Status', code, message }, headers)
  return true
}
