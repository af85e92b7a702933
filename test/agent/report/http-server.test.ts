import { spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readiness, serveHealth, type Health } from '../../../src/agent/report/http-server.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'

/** As many connections as the server takes, and more. */
const flood = 80

async function serve(t: Test, more: Partial<Health> = {}): Promise<number> {
  const metrics = () => Promise.resolve({ type: 'text/plain', text: 'metrics' })
  const health = { readiness: () => ({ ready: true, lines: [] }), metrics, hosts: () => ['node-1'], ...more }
  const server = await serveHealth({ host: '127.0.0.1', port: 0 }, health)
  t.teardown(() => server.close())
  return server.address.port
}

/**
 * The status of an answer to a prober with a new connection; undefined: none within five seconds of this process's processor time, which is
 * the server's: one that is blinded takes minutes. Other programs of a loaded machine take none of it.
 */
function probe(port: number, path = '/livez'): Promise<number | undefined> {
  return new Promise((resolve) => {
    const before = process.cpuUsage()
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    const late = setInterval(() => {
      const { user, system } = process.cpuUsage(before)
      if (user + system > 5_000_000) request.destroy()
    }, 20)
    request.on('error', () => resolve(undefined))
    request.on('close', () => clearInterval(late))
  })
}

async function idleConnection(t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** A connection whose answers are read, as one text. */
async function talk(t: Test, port: number): Promise<{ socket: Socket; received: () => string }> {
  const socket = await idleConnection(t, port)
  let answers = ''
  socket.on('data', (bytes: Buffer) => (answers += bytes.toString()))
  return { socket, received: () => answers }
}

await t.test('readiness lists the directories that are not intact, and counts only required ones', async (t) => {
  const intact = { path: '/a', required: true, intact: true, reason: 'Published', message: '' }
  const broken = {
    path: '/b',
    required: true,
    intact: false,
    reason: 'ObjectMissing',
    message: 'no Secret x/y',
  }
  const optional = { ...broken, path: '/c', required: false }
  t.strictSame(readiness([intact, optional]), { ready: true, lines: ['[+]/a ok'] })
  t.strictSame(readiness([intact, broken]), {
    ready: false,
    lines: ['[+]/a ok', '[-]/b ObjectMissing: no Secret x/y'],
  })
  t.equal(readiness([]).ready, true)
})

await t.test('connections that ask nothing do not blind the probes', async (t) => {
  const port = await serve(t)
  for (let count = 0; count < flood; count++) await idleConnection(t, port)
  for (let tries = 0; tries < 5; tries++) t.equal(await probe(port), 200)
})

await t.test('nor do connections that come back for ever', async (t) => {
  const port = await serve(t)
  const script = `
    const { connect } = require('node:net')
    const again = () => connect(${port}, '127.0.0.1').on('error', () => {}).on('close', () => setImmediate(again))
    for (let count = 0; count < ${flood}; count++) again()
    process.stdout.write('on')
  `
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const answers = []
  for (let tries = 0; tries < 20; tries++) answers.push(await probe(port))
  t.strictSame(
    answers.filter((status) => status !== 200),
    [],
  )
})

await t.test('a running request keeps its connection through any number of new ones', async (t) => {
  let answer = () => {}
  const asked = new Promise<void>((resolve) => {
    answer = resolve
  })
  let begun = false
  const port = await serve(t, {
    metrics: async () => {
      begun = true
      await asked
      return { type: 'text/plain', text: 'metrics' }
    },
  })
  const status = new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/metrics', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })
  await until('the request has arrived', () => begun)
  for (let count = 0; count < flood; count++) await idleConnection(t, port)
  t.equal(await probe(port), 200)
  answer()
  t.equal(await status, 200)
})

await t.test('a head that does not come within two seconds ends the connection', async (t) => {
  const time = new SimulatedTime(t)
  const port = await serve(t)
  const { socket, received } = await talk(t, port)
  socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n')
  t.equal(await probe(port), 200, 'an answer after the bytes before it have come')
  await time.advance(1_999)
  t.equal(received(), '')
  const closed = once(socket, 'close')
  await time.advance(1)
  await closed
  t.match(received(), /^HTTP\/1.1 408 /)
})

await t.test('nor is one kept that drips its head', async (t) => {
  const time = new SimulatedTime(t)
  const port = await serve(t)
  const { socket, received } = await talk(t, port)
  const closed = once(socket, 'close')
  // Each byte is a sign of life to a limit of silence.
  socket.write('GET /')
  for (let passed = 500; passed < 2_000; passed += 500) {
    await time.advance(500)
    socket.write('x')
    t.equal(await probe(port), 200)
    t.notMatch(received(), / 408 /, `after ${passed} ms`)
  }
  await time.advance(500)
  await closed
  t.match(received(), / 408 /)
})

await t.test('a connection has one answer, and nothing behind its first request is parsed', async (t) => {
  let parsed = 0
  const count = (): void => void (parsed += 1)
  subscribe('http.server.request.start', count)
  t.teardown(() => unsubscribe('http.server.request.start', count))
  let asked = 0
  const port = await serve(t, { readiness: () => ({ ready: true, lines: [`asked ${(asked += 1)}`] }) })
  const request = 'GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n'
  for (const behind of [request.repeat(1_500), '5\r\n', '\0'.repeat(60_000)]) {
    const { socket, received } = await talk(t, port)
    const closed = once(socket, 'close')
    socket.write(request + behind)
    await closed
    const answers = received().match(/^HTTP/gm)?.length ?? 0
    // The kernel may drop an answer to one who has sent more.
    t.ok(answers <= 1, `${answers} answers`)
  }
  t.equal(asked, 3)
  t.ok(parsed <= 3, `${parsed} requests parsed`)
})

await t.test('heads that are none of HTTP/1 are refused, and so are those without an end', async (t) => {
  const port = await serve(t)
  const answerTo = async (head: string): Promise<string> => {
    const { socket, received } = await talk(t, port)
    const closed = once(socket, 'close')
    for (const byte of head.length > 100 ? [head] : head) socket.write(byte)
    await closed
    return received().slice(9, 12)
  }
  t.equal(await answerTo('GET /livez HTTP/1.1\r\nHost:localhost \r\n\r\n'), '200')
  t.equal(await answerTo('\r\nHEAD /livez?verbose HTTP/1.0\r\n\r\n'), '200')
  t.equal(await answerTo('POST /livez HTTP/1.0\r\n\r\n'), '405')
  for (const head of [
    'GET /livez',
    'GET /livez HTTP/1.1',
    'PRI * HTTP/2.0\r\nhost: localhost',
    'GET / HTTP/1.1\r\nhost: a\r\nHOST: b',
  ])
    t.equal(await answerTo(`${head}\r\n\r\n`), '400', head)
  t.equal(await answerTo(`GET /livez HTTP/1.0\r\na: ${'x'.repeat(20_000)}\r\n\r\n`), '431')
})

await t.test('scrapers that come together share one computation of the metrics a second', async (t) => {
  const at: number[] = []
  let release = (): void => undefined
  const allCame = new Promise<void>((resolve) => (release = resolve))
  const port = await serve(t, {
    metrics: async () => {
      const text = String(at.push(performance.now()))
      await allCame
      return { type: 'text/plain', text }
    },
  })
  const scrapers = await Promise.all(Array.from({ length: 20 }, () => talk(t, port)))
  const scraped = scrapers.map(async ({ socket, received }) => {
    const closed = once(socket, 'close')
    socket.write('GET /metrics HTTP/1.0\r\n\r\n')
    await closed
    return /\d+$/.exec(received())?.[0]
  })
  // The server reads its connections in the order in which they have something to read.
  t.equal(await probe(port), 200)
  release()
  const answers = await Promise.all(scraped)
  t.strictSame([...new Set(answers)].sort(), ['1', '2'], 'the first has its answer at once, the others a second later')
  t.equal(answers.filter((answer) => answer === '1').length, 1)
  const last = await fetch(`http://127.0.0.1:${port}/metrics`)
  t.equal(await last.text(), String(at.length), 'and none has an answer from before its request')
  const gaps = at.slice(1).map((instant, index) => instant - (at[index] ?? 0))
  // A timer of Node may be a millisecond early.
  t.ok(
    gaps.every((gap) => gap >= 995),
    gaps.join(),
  )
})

await t.test('a client that ends its side behind the request has its answer', async (t) => {
  const later = (): Promise<{ type: string; text: string }> => pause(50).then(() => ({ type: 'text/plain', text: 'm' }))
  const { socket, received } = await talk(t, await serve(t, { metrics: later }))
  const closed = once(socket, 'close')
  socket.end('GET /metrics HTTP/1.0\r\n\r\n')
  await closed
  t.match(received(), /^HTTP\/1.1 200 OK\r\n.*connection: close\r\ncontent-length: 1\r\n\r\nm$/s)
})

await t.test('connections that send hundreds of requests at once do not blind the probes', async (t) => {
  const text = 'x'.repeat(1_300_000)
  const port = await serve(t, { metrics: () => Promise.resolve({ type: 'text/plain', text }) })
  for (const reads of [false, true]) {
    const script = `
      const { connect } = require('node:net')
      const requests = 'GET /metrics HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n'.repeat(1_500)
      const again = () => {
        const socket = connect(${port}, '127.0.0.1', () => socket.write(requests))
        socket.on('error', () => {})
        ${reads ? 'socket.resume()' : 'socket.pause()'}
      }
      for (let count = 0; count < 300; count++) again()
      process.stdout.write('on')
    `
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    t.teardown(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const answers = []
    for (let tries = 0; tries < 12; tries++) answers.push(await probe(port))
    const answered = answers.filter((status) => status === 200).length
    t.comment(
      `${answered} of 12 probes are answered within five seconds of processor time, where the answers are ${reads ? '' : 'not '}read`,
    )
    t.equal(answered, 12)
    child.kill('SIGKILL')
    await ended
  }
})

await t.test("a request by a name that is not the server's is answered with 421", async (t) => {
  const port = await serve(t, { hosts: () => ['node-1', 'Metrics.Example'] })
  const asked = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, path: '/metrics', agent: false, headers: { host } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      }).on('error', reject)
    })
  for (const host of ['127.0.0.1', `10.0.0.1:${port}`, '[::1]:80', 'localhost:1', 'NODE-1', 'metrics.example:10808']) {
    t.equal(await asked(host), 200, host)
  }
  for (const host of ['attacker.example', 'node-1.attacker.example', 'localhost.attacker.example:80', '127.0.0.1.x']) {
    t.equal(await asked(host), 421, host)
  }
})

await t.test('a server without requests never wakes its process', async (t) => {
  // Node's own look at connections is a timer: none may be left that fires within the hour.
  const script = `
    const { createHook } = await import('node:async_hooks')
    const timers = new Map()
    let isAnswered = false
    const look = () => {
      if (isAnswered && ![...timers.values()].some(({ _idleTimeout }) => _idleTimeout < 3_600_000)) process.stdout.write('rests')
    }
    const init = (id, type, _, timer) => void (type === 'Timeout' && timers.set(id, timer))
    createHook({ init, destroy: (id) => void (timers.delete(id) && look()) }).enable()
    const { serveHealth } = await import(${JSON.stringify(new URL('../../../src/agent/report/http-server.js', import.meta.url).href)})
    const { get } = await import('node:http')
    await serveHealth({ host: '127.0.0.1', port: 0 }, { readiness() {}, metrics() {}, hosts: () => [] }).then(({ address }) => new Promise((resolve) =>
      get({ ...address, path: '/livez', agent: false }, (answer) => answer.resume().on('end', resolve))))
    isAnswered = true
    look()
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (text: Buffer) => (said += text.toString()))
  await until('no timer is left', () => said.includes('rests'))
  t.pass()
})
