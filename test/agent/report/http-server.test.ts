import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
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
 * The status of an answer to a prober with a new connection; undefined: none within a second of this process's processor time, which is the
 * server's. Other programs of a loaded machine take none of it.
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
      if (user + system > 1_000_000) request.destroy()
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

await t.test('nor is one kept that drips the head of its next request', async (t) => {
  const time = new SimulatedTime(t)
  const port = await serve(t)
  const { socket, received } = await talk(t, port)
  socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await until('the first request is answered', () => received().includes('ok\n'))
  const closed = once(socket, 'close')
  // Each byte is a sign of life to a limit of silence.
  socket.write('GET /')
  for (let passed = 500; passed < 7_000; passed += 500) {
    await time.advance(500)
    socket.write('x')
    t.equal(await probe(port), 200)
    t.notMatch(received(), / 408 /, `after ${passed} ms`)
  }
  await time.advance(500)
  await closed
  t.match(received(), / 408 /)
})

await t.test(
  'requests that come before the answer to the one before are answered one by one, however late',
  async (t) => {
    const time = new SimulatedTime(t)
    const gates: (() => void)[] = []
    const port = await serve(t, {
      metrics: async () => {
        await new Promise<void>((resolve) => gates.push(resolve))
        return { type: 'text/plain', text: 'metrics' }
      },
    })
    const { socket, received } = await talk(t, port)
    socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(2))
    const count = (): number => received().split('HTTP/1.1 200').length - 1
    await until('the first request has arrived', () => gates.length === 1)
    gates[0]?.()
    await until('the first one is answered', () => count() === 1)
    await until('the second one has its turn', () => gates.length === 2)
    // Longer than a connection stays open for its next request.
    await time.advance(8_000)
    gates[1]?.()
    await until('the second one is answered', () => count() === 2)
    t.notMatch(received(), / 408 /)
  },
)

await t.test(
  'a connection with more than five requests under way is ended, and one with five has its answers',
  async (t) => {
    let open = () => {}
    const gate = new Promise<void>((resolve) => (open = resolve))
    const port = await serve(t, {
      metrics: async () => {
        await gate
        return { type: 'text/plain', text: 'metrics' }
      },
    })
    const ask = async (times: number) => {
      const talking = await talk(t, port)
      talking.socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(times))
      return talking
    }
    const five = await ask(5)
    const { socket, received } = await ask(6)
    await once(socket, 'close')
    t.equal(received(), '')
    open()
    await until('five are answered', () => five.received().split('HTTP/1.1 200').length === 6)
  },
)

await t.test('scrapers that come together share one computation of the metrics a second', async (t) => {
  const at: number[] = []
  const port = await serve(t, {
    metrics: () => Promise.resolve({ type: 'text/plain', text: String(at.push(performance.now())) }),
  })
  const scrape = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const answers = await Promise.all(Array.from({ length: 20 }, scrape))
  t.ok(new Set(answers).size <= 2, 'the first has its answer at once, the others a second later')
  t.equal(await scrape(), String(at.length), 'and none has an answer from before its request')
  const gaps = at.slice(1).map((instant, index) => instant - (at[index] ?? 0))
  // A timer of Node may be a millisecond early.
  t.ok(
    gaps.every((gap) => gap >= 995),
    gaps.join(),
  )
})

await t.test('connections that send hundreds of requests at once do not blind the probes', async (t) => {
  const text = 'x'.repeat(1_300_000)
  const port = await serve(t, { metrics: () => Promise.resolve({ type: 'text/plain', text }) })
  for (const reads of [false, true]) {
    const script = `
      const { connect } = require('node:net')
      const requests = 'GET /metrics HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n'.repeat(200)
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
      `${answered} of 12 probes are answered within a second of processor time, where the answers are ${reads ? '' : 'not '}read`,
    )
    // The first ones meet the heads of 60,000 requests, which Node has to parse.
    t.ok(answered >= 8)
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
