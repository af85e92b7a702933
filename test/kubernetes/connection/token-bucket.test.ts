/** The client's own limit of requests, alone and in a client that talks to a server. */
import t from 'tap'
import type { ApiObserver } from '../../../src/kubernetes/connection/client.js'
import { TokenBucket } from '../../../src/kubernetes/connection/token-bucket.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'
import { collect, start } from './connected.js'

async function elapsed(work: Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work
  return performance.now() - started
}

void t.test('the bucket gives a burst at once, then so many tokens a second, in order', async (t) => {
  const time = new SimulatedTime(t)
  const bucket = new TokenBucket({ qps: 50, burst: 5 })
  const given: [number, number][] = []
  const take = async (index: number) => void given.push([index, await bucket.take()])
  await time.during(Promise.all([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(take)))
  const waits = [0, 0, 0, 0, 0, 0.02, 0.04, 0.06, 0.08, 0.1]
  t.strictSame(
    given,
    waits.map((wait, index) => [index, wait]),
  )
})

void t.test('a caller that gives up takes no token', async (t) => {
  const time = new SimulatedTime(t)
  const bucket = new TokenBucket({ qps: 1, burst: 1 })
  await bucket.take()
  const abort = new AbortController()
  const waiting = Array.from({ length: 3 }, () => bucket.take(abort.signal))
  abort.abort(new Error('enough'))
  for (const one of waiting) await t.rejects(one, { message: 'enough' })
  await t.rejects(bucket.take(abort.signal), { message: 'enough' })
  t.equal(await time.during(bucket.take()), 1, 'the next one waits for its own token alone')
  const last = bucket.take()
  bucket.close()
  await last
  t.equal(await bucket.take(), 0, 'a closed one holds up nobody')
})

class Counted implements ApiObserver {
  readonly requests: string[] = []
  seconds = 0
  open = 0
  requested(verb: string, status: number | undefined): void {
    this.requests.push(`${verb} ${status ?? 'none'}`)
  }
  throttled(seconds: number): void {
    this.seconds += seconds
  }
  watches(change: number): void {
    this.open += change
  }
}

void t.test('a request waits for its token before its own time starts', async (t) => {
  const observer = new Counted()
  const { api } = await start(t, {}, {}, undefined, { rate: { qps: 10, burst: 1 }, observer })
  // The first connection takes its time on a machine that is busy.
  await api.get('/', {}, { timeout: 60_000 })
  const time = new SimulatedTime(t)
  const requests = Array.from({ length: 12 }, () => api.get('/', {}, { timeout: 1_000 }))
  t.ok(
    (await elapsed(time.during(Promise.all(requests)))) >= 1_100,
    'the last of them waits for longer than a request may take',
  )
  t.ok(observer.seconds >= 6, `${observer.seconds} s of waiting`)
  t.strictSame(new Set(observer.requests), new Set(['get 200']))
  t.equal(observer.requests.length, 13)
})

void t.test('the observer counts each verb, each outcome, and the open watches', async (t) => {
  const observer = new Counted()
  const { api, running } = await start(
    t,
    {
      handler: ({ path }, reply) => {
        if (path.startsWith('/refused')) reply.writeHead(429).end('{}')
        else if (path.startsWith('/cut')) reply.destroy()
        else reply.writeHead(path.startsWith('/made') ? 201 : 200).end('{}\n')
      },
    },
    {},
    undefined,
    { observer },
  )
  const options = { timeout: 60_000 }
  await api.get('/one', {}, options)
  await api.get('/refused', {}, { ...options, verb: 'list' })
  await api.send('POST', '/made', {}, options)
  await api.send('PATCH', '/one', {}, options)
  await t.rejects(api.get('/cut', {}, options))
  const stream = await api.stream('/watched', {}, options)
  t.equal(observer.open, 1)
  await collect(stream)
  await until('the watch is closed', () => observer.open === 0)
  await running.close()
  t.strictSame(observer.requests, ['get 200', 'list 429', 'create 201', 'patch 200', 'get none', 'watch 200'])
})
