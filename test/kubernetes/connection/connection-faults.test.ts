import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import t, { type Test } from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { settled, SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'
import { beginWatch, json, startServer } from './api-server.js'
import { issue, makeAuthority, temporaryDirectory } from './certificates.js'
import { authority, collect, connectTo, failure, once, serving, start } from './connected.js'
import { base64, kubeconfig, loadKubeconfig } from '../credentials/kubeconfig-text.js'

/** Prints its port, and then a line for each ping. */
const serverScript = `
  const { createSecureServer } = require('node:http2')
  const server = createSecureServer({ key: process.env.KEY, cert: process.env.CRT, allowHTTP1: false })
  server.on('stream', (stream) => { stream.respond({ ':status': 200 }); stream.write('1\\n') })
  server.on('session', (session) => session.on('ping', () => console.log('ping')))
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

/** A server in a separate process, which the test can stop. */
async function startProcess(t: Test) {
  const child = spawn(process.execPath, ['-e', serverScript], {
    env: { ...process.env, NODE_OPTIONS: '', KEY: serving.key, CRT: serving.certificate },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const { value: port } = (await lines.next()) as { value: string }
  return { child, url: `https://127.0.0.1:${port}`, ping: () => lines.next() }
}

void t.test('a silent stream stays open', async (t) => {
  const { url, ping } = await startProcess(t)
  const api = await connectTo(t, url, {}, { ping: 50, pong: 60_000 })
  const watch = await api.stream('/watch', {}, once)
  const ending = failure(collect(watch))
  const several = async () => {
    for (let pings = 0; pings < 5; pings += 1) await ping()
    return 'quiet'
  }
  t.equal(await Promise.race([ending, several()]), 'quiet')
  t.equal(api.connections, 1)
})

void t.test('pings tell a stopped server from a quiet one', async (t) => {
  const { child, url } = await startProcess(t)
  const time = new SimulatedTime(t)
  // So long that no server fails by being slow.
  const api = await connectTo(t, url, {}, { ping: 100, pong: 4_000 })
  const watches = await Promise.all([1, 2].map((i) => api.stream(`/watch/${i}`, {}, once)))
  const endings = watches.map((watch) => failure(collect(watch)))
  child.kill('SIGSTOP')
  for (const ending of await time.during(Promise.all(endings))) {
    t.match(ending, { reason: 'timeout', message: `${url}: no answer to a ping within 4000 ms` })
  }
  t.equal(api.connections, 0)
})

void t.test('a request that takes too long makes sure that the connection lives', async (t) => {
  const { child, url } = await startProcess(t)
  // The next periodic ping would come after ten minutes.
  const api = await connectTo(t, url, {}, { ping: 600_000, pong: 200 })
  const watch = await api.stream('/watch', {}, once)
  child.kill('SIGSTOP')
  t.match(await failure(api.get('/x', {}, { timeout: 100 })), { message: 'GET /x: no answer within 100 ms' })
  t.match(await failure(collect(watch)), { reason: 'timeout' })
})

void t.test('GOAWAY lets running streams finish, and new requests get a new connection', async (t) => {
  const replies: (Http2ServerResponse | ServerResponse)[] = []
  const { api, running } = await start(t, {
    handler: (seen, reply) => {
      if (seen.path !== '/watch') {
        json(reply, 200, {})
        return
      }
      replies.push(reply)
      beginWatch(reply, 1)
    },
  })
  const watch = await api.stream('/watch', {}, once)
  const [session] = running.sessions
  session?.goaway(0)
  const ended = collect(watch)
  // The answer to a ping that was sent after GOAWAY: the client has seen both.
  await new Promise<void>((resolve) => session?.ping(() => resolve()))
  t.equal((await api.get('/get', {}, once)).status, 200)
  t.equal(running.accepted(), 2)
  const [reply] = replies as ServerResponse[]
  reply?.write('2\n')
  reply?.end()
  t.strictSame(await ended, ['1', '2'], 'the watch went on to its end')
})

void t.test('GOAWAY with an error ends the streams, and says so', async (t) => {
  const { api, running } = await start(t, { handler: (_, reply) => beginWatch(reply, 1) })
  const watch = await api.stream('/watch', {}, once)
  const [session] = running.sessions
  session?.goaway(11)
  const error = await failure(collect(watch))
  t.match(error, { reason: 'goaway', message: /the server is closing the connection \(GOAWAY, code 11\)/ })
})

void t.test('the client sends a request again that the server did not process', async (t) => {
  let refusals = 2
  const { api, running } = await start(t, {
    handler: (_, reply) => {
      if (refusals === 0) {
        json(reply, 200, {})
        return
      }
      refusals -= 1
      ;(reply as Http2ServerResponse).stream.close(7)
    },
  })
  t.equal((await api.send('POST', '/events', {}, once)).status, 200)
  t.equal(running.requests.length, 3)
  refusals = 100
  t.match(await failure(api.get('/x', {}, once)), { reason: 'connection' })
  t.equal(running.requests.length, 7, 'and not for ever')
})

for (const protocol of ['h2', 'https'] as const) {
  void t.test(`a ${protocol} connection that breaks ends its streams`, async (t) => {
    const { api, running } = await start(t, { protocol, handler: (_, reply) => beginWatch(reply, 1) })
    const watch = await api.stream('/watch', {}, once)
    const ended = failure(collect(watch))
    running.cut()
    await running.close()
    const error = await ended
    t.equal(error.reason, 'connection')
    t.match(error.message, /closed|cut off|reset|aborted/)
    t.match(await failure(api.get('/', {}, once)), { message: /connection refused \(ECONNREFUSED\)/ })
  })

  void t.test(`over ${protocol} the caller's signal ends a stream with its own reason`, async (t) => {
    const closed: string[] = []
    const { api, running } = await start(t, {
      protocol,
      handler: (seen, reply) => {
        ;(reply as ServerResponse).on('close', () => closed.push(seen.path))
        if (seen.path === '/watch') beginWatch(reply, 1)
      },
    })
    const controller = new AbortController()
    const watch = await api.stream('/watch', {}, { ...once, attempt: controller })
    const get = api.get('/never', {}, { ...once, signal: controller.signal })
    const reason = new Error('enough')
    const endings = [t.rejects(collect(watch), reason), t.rejects(get, reason)]
    await until('the request is there', () => running.requests.some(({ path }) => path === '/never'))
    controller.abort(reason)
    await Promise.all(endings)
    await t.rejects(api.get('/x', {}, { ...once, signal: controller.signal }), reason)
    await until('both are closed', () => closed.length >= 2)
    t.strictSame(closed.sort(), ['/never', '/watch'], 'the server learns of it')
  })

  void t.test(`over ${protocol} responses have limits`, async (t) => {
    const { api } = await start(
      t,
      {
        protocol,
        handler: (seen, reply) => {
          if (seen.path === '/large') {
            json(reply, 200, 'x'.repeat(2000))
            return
          }
          if (seen.path === '/gzip') {
            json(reply, 200, 'x', { 'content-encoding': 'gzip' })
            return
          }
          beginWatch(reply, seen.path === '/half' ? 1 : 'x'.repeat(2000))
          if (seen.path === '/half') (reply as ServerResponse).end('{"cut')
        },
      },
      {},
      { body: 1000, line: 1000 },
    )
    t.match(await failure(api.get('/large', {}, once)), {
      message: 'GET /large: the response is larger than 1000 bytes',
    })
    t.match(await failure(api.get('/gzip', {}, once)), {
      message: 'GET /gzip: the response is compressed, though holdfast did not ask for that',
    })
    const half = await api.stream('/half', {}, once)
    t.match(await failure(collect(half)), { message: 'GET /half: the stream ended in the middle of a line' })
  })
}

void t.test('the client survives an idle HTTP/1.1 connection that the server closes just as it is used', async (t) => {
  let answered = 0
  const server = createServer((socket) => {
    let requests = 0
    socket.on('error', () => undefined)
    socket.on('data', () => {
      requests += 1
      if (requests === 1) {
        answered += 1
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
      } else socket.resetAndDestroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const api = await connectTo(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await api.get('/', {}, once)
  t.equal((await api.get('/', {}, once)).status, 200, 'a GET is sent again')
  t.equal(answered, 2)
  t.match(await failure(api.send('POST', '/', {}, once)), { reason: 'connection' }, 'a POST is not')
  t.equal(answered, 2)
})

void t.test('a line has a limit before it ends', async (t) => {
  const { api } = await start(
    t,
    {
      handler: (_, reply) => {
        beginWatch(reply)
        ;(reply as ServerResponse).write('x'.repeat(2000))
      },
    },
    {},
    { line: 1000 },
  )
  const long = await api.stream('/long', {}, once)
  t.match(await failure(collect(long)), { message: 'GET /long: a line is longer than 1000 bytes' })
})

void t.test('the client gives up on a server that accepts and says nothing', async (t) => {
  const silent = createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => silent.close())
  const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const api = await connectTo(t, url, {}, { connect: 150 })
  t.match(await failure(api.get('/', {}, once)), {
    reason: 'timeout',
    message: `${url}: no connection within 150 ms`,
  })
  const patient = await connectTo(t, url)
  t.match(await failure(patient.get('/', {}, { timeout: 100 })), {
    reason: 'timeout',
    message: 'GET /: no answer within 100 ms',
  })
  const pending = failure(patient.get('/', {}, once))
  await settled()
  await patient.close()
  t.match(await pending, { message: 'the client was closed' })
  t.match(await failure(patient.get('/', {}, once)), { message: 'the client was closed' })
})

void t.test("a connection error names the fault of the server's TLS", async (t) => {
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const other = makeAuthority('other')
  const expired = issue(authority, { name: 'old', alternativeNames: 'IP:127.0.0.1', days: 0 })
  const running = await startServer({ serving })
  const outdated = await startServer({ serving: expired })
  const plain = await startServer({ protocol: 'http' })
  const strict = await startServer({ serving, clientAuthority: other.certificate })
  const strict1 = await startServer({ serving, clientAuthority: other.certificate, protocol: 'https' })
  const all = [running, outdated, plain, strict, strict1]
  t.teardown(() => Promise.all(all.map((server) => server.close())))
  const attempt = async (cluster: object) => {
    const api = connect(await loadKubeconfig(directory.path, kubeconfig(cluster, {})), { version: '1' })
    try {
      return await api.get('/', {}, once)
    } finally {
      await api.close()
    }
  }
  const trusted = { 'certificate-authority-data': base64(authority.certificate) }
  t.match(await failure(attempt({ server: running.url, 'certificate-authority-data': base64(other.certificate) })), {
    message: /not signed by the authority that the kubeconfig names/,
  })
  t.match(await failure(attempt({ server: running.url, ...trusted, 'tls-server-name': 'wrong.example' })), {
    message: /wrong\.example.*ERR_TLS_CERT_ALTNAME_INVALID/,
  })
  t.equal((await attempt({ server: running.url, ...trusted, 'tls-server-name': 'api.example' })).status, 200)
  const byName = running.url.replace('127.0.0.1', 'localhost')
  t.match(await failure(attempt({ server: byName, ...trusted })), { message: /ERR_TLS_CERT_ALTNAME_INVALID/ })
  t.equal((await attempt({ server: byName, ...trusted, 'tls-server-name': '127.0.0.1' })).status, 200)
  t.equal((await attempt({ server: byName, 'insecure-skip-tls-verify': true })).status, 200)
  const end = new X509Certificate(expired.certificate).validTo
  await until('the certificate of no days has ended', () => Date.now() > Date.parse(end) + 1_000)
  t.match(await failure(attempt({ server: outdated.url, ...trusted })), { message: /is not valid now/ })
  t.match(await failure(attempt({ server: plain.url.replace('http', 'https'), ...trusted })), {
    message: /does not speak TLS/,
  })
  for (const { url } of [strict, strict1]) {
    t.match(await failure(attempt({ server: url, ...trusted })), {
      reason: 'connection',
      message: /refuses the client certificate, or wants one/,
    })
  }
})
