/** Hooks that call a URL: what counts as an answer, how long it is waited for, whom they trust. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, createServer as createTcpServer, type AddressInfo, type Server } from 'node:net'
import t, { type Test } from 'tap'
import type { Hook } from '../../src/config/hooks.js'
import { underGarbageCollection } from '../collect-garbage.js'
import { makeCertificate, makeKey } from './make-certificates.js'
import { canary, policy, outcome, messageOf } from './hook-outcome.js'

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function withServer(answer: RequestListener): Promise<number> {
  const server = createServer(answer)
  const port = await listen(server)
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return port
}

/** A port without a listener, and that none can take: a connection goes out from it. */
async function silentPort(t: Test): Promise<number> {
  const server = createTcpServer()
  const connection = connect(await listen(server), '127.0.0.1')
  t.teardown(() => {
    connection.destroy()
    server.close()
  })
  await once(connection, 'connect')
  return connection.localPort ?? 0
}

const http = (url: string, more: Partial<typeof policy & { method: string }> = {}): Hook => ({
  type: 'http',
  name: 'http x',
  url,
  method: 'POST',
  ...policy,
  ...more,
})

await t.test('an http hook sends one request, and judges its status', async (t) => {
  const seen: IncomingMessage[] = []
  const port = await withServer((request, response) => {
    seen.push(request)
    const [, kind, status] = (request.url ?? '').split(/[/?]/)
    if (kind === 'silent') return
    if (kind === 'reset') return void request.socket.resetAndDestroy()
    const headers = { location: `http://127.0.0.1:${port}/status/200?${canary}`, 'x-secret': canary }
    response.writeHead(Number(status ?? 200), headers)
    if (kind === 'endless') {
      const write = () => response.write(Buffer.alloc(16_384))
      response.on('drain', write)
      while (write());
    } else if (kind === 'hanging') response.write(canary)
    else response.end(canary)
  })
  const url = (path: string) => `http://127.0.0.1:${port}/${path}?token=${canary}`
  for (const status of [200, 201, 204, 299]) t.equal(await messageOf(http(url(`status/${status}`))), undefined)
  t.match(seen[0], {
    method: 'POST',
    url: `/status/200?token=${canary}`,
    headers: { 'user-agent': 'holdfast', connection: 'close' },
  })
  t.equal(await messageOf(http(url('status/200'), { method: 'GET' })), undefined)
  t.equal(seen.at(-1)?.method, 'GET')
  const before = seen.length
  t.equal(await messageOf(http(url('status/302'))), 'http x: answered with status 302: redirects are not followed')
  t.equal(seen.length, before + 1)
  for (const status of [400, 404, 500, 503]) {
    t.equal(await messageOf(http(url(`status/${status}`))), `http x: answered with status ${status}`)
  }
  t.equal(await messageOf(http(url('reset'))), 'http x: no answer: ECONNRESET')
  t.equal(await messageOf(http(url('silent'), { timeout: 100 })), 'http x: no answer within 100 ms')
  t.equal(await messageOf(http(url('hanging/200'), { timeout: 100 })), 'http x: no answer within 100 ms')
  const hanging = messageOf(http(url('silent'), { timeout: 300 }))
  t.equal(await underGarbageCollection(hanging), 'http x: no answer within 300 ms')
  t.equal(await messageOf(http(url('endless/200'))), undefined, 'an endless body is cut')
  const tries = seen.length
  t.equal(await messageOf(http(url('status/500'), { retries: 2 })), 'http x: answered with status 500 (try 3 of 3)')
  t.equal(seen.length, tries + 3)
  const abandoned = new AbortController()
  const reason = new Error('going down')
  const waiting = outcome(http(url('silent')), { signal: abandoned.signal })
  setTimeout(() => abandoned.abort(reason), 50)
  t.equal((await waiting).error, reason)
})

await t.test('an http hook fails where no server listens, or an untrusted one', async (t) => {
  const port = await silentPort(t)
  t.equal(await messageOf(http(`http://127.0.0.1:${port}/${canary}`)), 'http x: no answer: ECONNREFUSED')
  t.equal(await messageOf(http(`http://localhost:${port}/${canary}`)), 'http x: no answer: ECONNREFUSED')
  const key = makeKey()
  const server = createTlsServer({ key, cert: makeCertificate(key) }, (_request, response) => response.end())
  t.teardown(() => server.close())
  const secure = await listen(server)
  t.equal(
    await messageOf(http(`https://127.0.0.1:${secure}/${canary}`)),
    'http x: no answer: DEPTH_ZERO_SELF_SIGNED_CERT',
  )
  t.match(
    await messageOf(http(`https://127.0.0.1:${await withServer((_request, response) => response.end(canary))}/`)),
    /^http x: no answer: (EPROTO|ERR_SSL_\w+)$/,
  )
})
