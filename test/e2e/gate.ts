/** A way to the API server that can be shut: what an agent meets when the network or the server is away. */
import { once } from 'node:events'
import { type Socket, connect, createServer } from 'node:net'
import type { Test } from 'tap'
import { freePort } from './ports.js'

export class Gate {
  private readonly sockets = new Set<Socket>()
  private isOpen = true
  /** Connections that were let through, ever. */
  passed = 0

  private constructor(
    readonly port: number,
    private readonly target: number,
  ) {}

  /** An open gate before a port of this machine; closed for good when the test ends. */
  static async before(t: Test, target: number): Promise<Gate> {
    const gate = new Gate(await freePort(), target)
    const server = createServer((socket) => gate.accept(socket))
    server.listen(gate.port, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      gate.shut()
      server.close()
    })
    return gate
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`
  }

  /** Resets every connection, and each new one. */
  shut(): void {
    this.isOpen = false
    for (const socket of this.sockets) socket.resetAndDestroy()
  }

  open(): void {
    this.isOpen = true
  }

  private accept(socket: Socket): void {
    if (!this.isOpen) {
      socket.resetAndDestroy()
      return
    }
    this.passed++
    const onward = connect(this.target, '127.0.0.1')
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      this.sockets.add(one)
      one.on('error', () => other.destroy())
      one.once('close', () => {
        this.sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  }
}
