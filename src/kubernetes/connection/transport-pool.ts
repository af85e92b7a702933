import type { AccessSnapshot } from '../credentials/access.js'
import { ConnectionError } from './client.js'
import { wrapConnectionError, NotProcessed } from './connection-error.js'
import { unlessAborted } from '../../deadline.js'
import { dial } from './dial.js'
import { openHttp1 } from './http1-transport.js'
import { openHttp2 } from './http2-transport.js'
import type { Transport, TransportLimits } from './transport.js'

/**
 * The connections to one API server: as few as the number of streams allows. Requests that arrive while one is being
 * opened wait for it and share it, and share its failure.
 */
export class TransportPool {
  #lines: PooledConnection[] = []
  #inForce: string | undefined
  /** The guessed number of streams of a connection that is still opening: the last one's. */
  #expected = Infinity
  readonly #sweep: NodeJS.Timeout
  /** Bytes that have come over connections which are forgotten. */
  #past = 0

  constructor(private readonly limits: TransportLimits) {
    this.#sweep = setInterval(() => this.#closeIdle(), Math.min(limits.ping, limits.idle)).unref()
  }

  get connections(): number {
    return this.#lines.reduce((sum, { transport }) => sum + (transport?.sockets ?? 0), 0)
  }

  /** Bytes that have come over all connections, closed ones too. */
  get received(): number {
    return this.#lines.reduce((sum, { transport }) => sum + (transport?.received ?? 0), this.#past)
  }

  /**
   * Reserves a place on a connection made with this access. Rejects with ConnectionError, with the signal's reason, or
   * with NotProcessed where the access has been replaced meanwhile, or new connections are closed at once.
   */
  async lease(access: AccessSnapshot, signal: AbortSignal): Promise<Lease> {
    for (;;) {
      if (access.connectionId !== this.#inForce) throw new NotProcessed('the credentials have been replaced')
      this.#forgetClosed()
      const line = this.#lines.find((candidate) => candidate.takes(access, this.#expected)) ?? this.#open(access)
      line.taken += 1
      try {
        const transport = await unlessAborted(line.ready, signal)
        this.#expected = transport.limit
        if (!transport.open) throw new NotProcessed('the connection was closed at once')
        // The server tells its limit only now: a request beyond it looks for another connection.
        if (line.taken <= transport.limit) return leaseOf(line, transport)
      } catch (error) {
        line.release()
        throw error
      }
      line.release()
    }
  }

  /**
   * From now on, this access is in force. Connections that were made with other credentials drain; what another server says counts no
   * more.
   */
  switchTo(access: AccessSnapshot): void {
    this.#inForce = access.connectionId
    for (const line of this.#lines) {
      const { server, connectionId } = line.access
      if (connectionId === access.connectionId) continue
      if (server.href === access.server.href) line.drain(this.limits.drain)
      else
        line.destroy(
          new ConnectionError(`${server.origin}: the kubeconfig leads to ${access.server.origin} now`, 'rotation'),
        )
    }
  }

  destroy(error: ConnectionError): void {
    clearInterval(this.#sweep)
    for (const line of this.#lines) line.destroy(error)
    this.#lines = []
  }

  #open(access: AccessSnapshot): PooledConnection {
    if (this.#lines.length >= this.limits.connections) {
      const problem = `${this.limits.connections} connections are open, and the server accepts no more requests on any of them`
      throw new ConnectionError(`${access.server.origin}: ${problem}`, 'connection')
    }
    const line = new PooledConnection(access, this.limits)
    this.#lines.push(line)
    line.ready.catch(() => (this.#lines = this.#lines.filter((other) => other !== line)))
    return line
  }

  #forgetClosed(): void {
    for (const { over, transport } of this.#lines) if (over) this.#past += transport?.received ?? 0
    this.#lines = this.#lines.filter((line) => !line.over)
  }

  #closeIdle(): void {
    this.#forgetClosed()
    const before = performance.now() - this.limits.idle
    for (const line of this.#lines) if (line.taken === 0 && line.idleSince < before) line.drain(0)
  }
}

export interface Lease {
  readonly transport: Transport
  /** Gives the place back; more than once does no harm. */
  readonly release: () => void
}

function leaseOf(line: PooledConnection, transport: Transport): Lease {
  let held = true
  const release = (): void => {
    if (held) line.release()
    held = false
  }
  return { transport, release }
}

/** One connection, from the moment that it is opened. */
class PooledConnection {
  taken = 0
  /** performance.now(). */
  idleSince = performance.now()
  transport: Transport | undefined
  readonly ready: Promise<Transport>
  #draining = false
  readonly #dials = new AbortController()

  constructor(
    readonly access: AccessSnapshot,
    private readonly limits: TransportLimits,
  ) {
    this.ready = this.#connect()
  }

  takes(access: AccessSnapshot, expected: number): boolean {
    if (this.#draining || this.access.connectionId !== access.connectionId) return false
    if (!this.transport) return this.taken < Math.min(this.limits.streams, expected)
    return this.transport.open && this.taken < this.transport.limit
  }

  get over(): boolean {
    return this.transport !== undefined && !this.transport.open && this.transport.sockets === 0
  }

  release(): void {
    this.taken -= 1
    this.idleSince = performance.now()
  }

  drain(limit: number): void {
    if (this.#draining) return
    this.#draining = true
    this.transport?.drain()
    const outdated = new ConnectionError(
      `${this.access.server.origin}: the credentials or the authority of this connection have been replaced`,
      'rotation',
    )
    setTimeout(() => this.destroy(outdated), limit).unref()
  }

  destroy(error: ConnectionError): void {
    this.#dials.abort(error)
    this.transport?.destroy(error)
  }

  async #connect(): Promise<Transport> {
    const { server } = this.access
    try {
      const { signal } = this.#dials
      const transport = await openTransport(this.access, this.limits, signal)
      if (signal.aborted) transport.destroy(signal.reason as ConnectionError)
      else if (this.#draining) transport.drain()
      this.transport = transport
      return transport
    } catch (error) {
      throw wrapConnectionError(server.origin, error)
    }
  }
}

/** HTTP/2 where ALPN agrees on it; Node's modules of either protocol are loaded only where they are needed. */
async function openTransport(access: AccessSnapshot, limits: TransportLimits, signal: AbortSignal): Promise<Transport> {
  const socket = await dial(access, ['h2', 'http/1.1'], limits.connect, signal)
  if ('alpnProtocol' in socket && socket.alpnProtocol === 'h2') return openHttp2(socket, access.server, limits)
  return openHttp1(access, socket, () => dial(access, ['http/1.1'], limits.connect, signal))
}
