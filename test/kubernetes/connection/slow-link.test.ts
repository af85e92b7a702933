/** Limits are of silence: a client waits for a slow answer, not for a trickle, and small frames hold up no other stream. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { sleep } from '../../../src/deadline.js'
import { SimulatedTime } from '../../simulated-time.js'
import { beginWatch, type Reply } from './api-server.js'
import { collect, connectTo, failure, once, start } from './connected.js'
import { startRawServer } from './raw-http2.js'

/** Milliseconds of processor time of this process, without that of other programs. */
const processorTime = (): number => process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000

/** The most processor time, in milliseconds, that passed between two turns of the event loop while the work went on. */
async function standstill(work: Promise<unknown>): Promise<number> {
  let longest = 0
  let at = processorTime()
  const timer = setInterval(() => {
    longest = Math.max(longest, processorTime() - at)
    at = processorTime()
  }, 5)
  await work
  clearInterval(timer)
  return longest
}

await t.test('a line in HTTP/2 frames of one byte lets others have their turn', async (t) => {
  const length = 200_000
  const api = await connectTo(t, await startRawServer(t, { length, size: 1, pause: 0 }))
  const watch = async (): Promise<number> => {
    const { takeLines } = await api.stream('/watch', {}, once)
    return new Promise((resolve, reject) => {
      takeLines((line) => {
        resolve(line.take().length)
        return Promise.resolve()
      }).catch(reject)
    })
  }
  const all = Promise.all([1, 2, 3, 4].map(watch))
  const longest = await standstill(all)
  t.strictSame(await all, Array(4).fill(length))
  t.comment(`${Math.round(longest)} ms`)
  t.ok(longest < 1_000, `${Math.round(longest)} ms`)
})

/** Writes the text in pieces, so many milliseconds apart. */
async function writeSlowly(reply: Reply, text: string, pieces: number, interval: number): Promise<void> {
  const response = reply as ServerResponse
  const size = Math.ceil(text.length / pieces)
  for (let at = 0; at < text.length && !response.destroyed; at += size) {
    response.write(text.slice(at, at + size))
    await sleep(interval)
  }
  response.end()
}

/** No time passes until so many requests have reached the server, however long a loaded machine takes for files and handshakes. */
function arrivals(count: number): { readonly arrived: () => void; readonly all: Promise<void> } {
  let left = count
  let end = (): void => undefined
  const all = new Promise<void>((resolve) => (end = resolve))
  const arrived = (): void => {
    left -= 1
    if (left === 0) end()
  }
  return { arrived, all }
}

for (const protocol of ['h2', 'https'] as const) {
  await t.test(`over ${protocol} an answer that takes longer than its limit is whole while it comes`, async (t) => {
    const time = new SimulatedTime(t)
    const { arrived, all } = arrivals(1)
    const text = JSON.stringify({ data: 'x'.repeat(100_000) })
    const { api } = await start(t, {
      protocol,
      handler: (_, reply) => {
        ;(reply as ServerResponse).writeHead(200, { 'content-type': 'application/json' })
        void writeSlowly(reply, text, 20, 100)
        arrived()
      },
    })
    const answer = api.get('/x', {}, { timeout: 600 })
    await all
    t.match(await time.during(answer), { status: 200, body: { data: /^x{100000}$/ } })
  })

  await t.test(`over ${protocol} a trickle is no answer, and the message says how much came`, async (t) => {
    const time = new SimulatedTime(t)
    const { arrived, all } = arrivals(1)
    const { api } = await start(t, {
      protocol,
      handler: (_, reply) => {
        ;(reply as ServerResponse).writeHead(200, { 'content-type': 'application/json' })
        arrived()
        void writeSlowly(reply, '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"', 50, 300)
      },
    })
    const refusal = failure(api.get('/x', {}, { timeout: 1_000 }))
    await all
    const started = time.now
    const error = await time.during(refusal)
    t.match(error, {
      reason: 'timeout',
      message: /^GET \/x: the answer stopped after \d+ bytes: too little came within 1000 ms$/,
    })
    t.ok(time.now - started < 8_000)
  })
}

await t.test('an answer whose turn comes late on a busy connection is waited for', async (t) => {
  const time = new SimulatedTime(t)
  const { arrived, all } = arrivals(2)
  const { api } = await start(t, {
    handler: ({ path }, reply) => {
      arrived()
      const body = path === '/long' ? JSON.stringify('x'.repeat(200_000)) : '"small"'
      ;(reply as ServerResponse).writeHead(200, { 'content-type': 'application/json' })
      if (path === '/long') void writeSlowly(reply, body, 40, 100)
      else void sleep(2_500).then(() => (reply as ServerResponse).end(body))
    },
  })
  const both = Promise.all([api.get('/long', {}, { timeout: 500 }), api.get('/small', {}, { timeout: 500 })])
  await all
  const [long, small] = await time.during(both)
  t.equal((long.body as string).length, 200_000)
  t.equal(small.body, 'small')
})

await t.test('a connection over which bytes come is owed no ping', async (t) => {
  const time = new SimulatedTime(t)
  let pings = 0
  const { api, running } = await start(t, { handler: (_, reply) => beginWatch(reply, 1) }, {}, { ping: 300, pong: 200 })
  const watch = await api.stream('/watch', {}, once)
  const ended = failure(collect(watch))
  for (const session of running.sessions) session.on('ping', () => pings++)
  const talking = setInterval(() => {
    for (const session of running.sessions) session.settings({ maxConcurrentStreams: 50 + (pings % 2) })
  }, 50)
  await time.advance(1_500)
  t.equal(pings, 0)
  clearInterval(talking)
  await time.until('silence is asked', () => pings > 0, 20, 1_000)
  await api.close()
  await ended
})
