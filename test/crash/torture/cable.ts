/** The network between a node and its witness, which can go away as it does with the node's power: nothing is closed, all is silent. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export class Cable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** One for all connections that were made since the last cut. */
  #plugged = { in: true }

  private constructor(readonly to: number) {
    this.#server = createServer((node) => this.#join(node))
  }

  /** To a port of this machine. */
  static async to(port: number): Promise<Cable> {
    const cable = new Cable(port)
    cable.#server.listen(0, '127.0.0.1')
    await once(cable.#server, 'listening')
    return cable
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Nothing passes any more on the connections that there are; new ones do. */
  cut(): void {
    this.#plugged.in = false
    this.#plugged = { in: true }
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #join(node: Socket): void {
    const witness = connect({ port: this.to, host: '127.0.0.1', noDelay: true })
    const plugged = this.#plugged
    for (const [from, to] of [
      [node, witness],
      [witness, node],
    ] as const) {
      this.#sockets.add(from)
      from.setNoDelay(true)
      from.on('data', (bytes) => plugged.in && to.write(bytes))
      from.on('end', () => plugged.in && to.end())
      from.on('error', () => plugged.in && to.destroy())
    }
  }
}
