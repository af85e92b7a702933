/** Loopback ports for servers that the tests stop and start again on the same port. */
import { once } from 'node:events'
import { createServer, type ListenOptions, type Server } from 'node:net'

/**
 * A port without a listener, which no other process of tests is given until this one ends: between its choice and its server's start, and
 * while the server is down, another test would take it. It lies below Linux's ephemeral range (32768 and up): there, while the server is
 * down, a client that tries to connect to it again and again could be given the very port as its own, and meet itself.
 * @throws Error if none of 100 tried is free
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    // Of a name in the abstract namespace (unix(7)), which goes with its process, and belongs to a network namespace, as ports do.
    const claim = await listening({ path: `\0holdfast test port ${port}` })
    if (claim === undefined) continue
    const server = await listening({ port, host: '127.0.0.1' })
    if (server === undefined) {
      claim.close()
      continue
    }
    server.close()
    await once(server, 'close')
    claim.unref()
    return port
  }
  throw new Error('found no free port on 127.0.0.1 between 20000 and 32000')
}

/** undefined where another one listens there. */
async function listening(options: ListenOptions): Promise<Server | undefined> {
  const server = createServer()
  try {
    server.listen(options)
    await once(server, 'listening')
    return server
  } catch {
    return undefined
  }
}
