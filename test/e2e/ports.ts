/** Loopback ports for servers that the tests stop and start again on the same port. */
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port without a listener. It lies below Linux's ephemeral range (32768 and up): there, while the server is down,
 * a client that tries to connect to it again and again could be given the very port as its own, and meet itself.
 * @throws Error if none of 100 tried is free
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    const server = createServer()
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    } catch {
      continue
    }
    server.close()
    await once(server, 'close')
    return port
  }
  throw new Error('found no free port on 127.0.0.1 between 20000 and 32000')
}
