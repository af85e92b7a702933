/** An HTTP proxy that only tunnels, and for which every name is this machine's. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { Test } from 'tap'
import { freePort } from './ports.js'

export class ConnectProxy {
  /** `HOST:PORT` of every CONNECT, in order. */
  readonly asked: string[] = []

  private constructor(readonly url: string) {}

  /** Ends with the test. */
  static async start(t: Test): Promise<ConnectProxy> {
    const port = await freePort()
    const proxy = new ConnectProxy(`http://127.0.0.1:${port}`)
    const server = createServer((_, response) => response.writeHead(405).end())
    server.on('connect', (request, socket, head) => {
      const authority = request.url ?? ''
      proxy.asked.push(authority)
      const onward = connect(Number(new URL(`http://${authority}`).port), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
        onward.write(head)
        onward.pipe(socket).pipe(onward)
      })
      onward.on('error', () => socket.destroy())
      socket.on('error', () => onward.destroy())
      socket.once('close', () => onward.destroy())
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    return proxy
  }
}
