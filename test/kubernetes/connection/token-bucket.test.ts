/** The client's own limit of requests, alone and in a client that talks to a server. */
import t from 'tap'
import type { ApiObserver } from '../../../src/kubernetes/connection/client.js'
import { TokenBucket } from '../../../src/kubernetes/connection/token-bucket.js'
import { until } from '../../until.js'
import { collect, start } from './connected.js'

async function elapsed(work: Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work
  return performance.now() - started
}

void t.test('the bucket gives a burst at once, then so many tokens a second, in order', async (t) => {
  const bucket = new TokenBucket({ qps: 50, burst: 5 })
  const order: number[] = []
  let waited = 0
  const take = async (index: number) => {
    const seconds = await bucket.take()
    waited += seconds
    order.push(index)
  }
  const started = performance.now()
  await Promise.all([0, 1, 2, 3, 4].map(take))
  t.equal(waited, 0, 'nobody of the burst waits')
  await Promise.all([5, 6, 7, 8, 9].map(take))
  const milliseconds = performance.now() - started
  t.ok(milliseconds >= 95, `five more take 100 ms, measured from the first: ${milliseconds}`)
  t.ok(waited > 0, 'and each says how long it waited')
  t.strictSame(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

void t.test('a caller that gives up takes no token', async (t) => {
  const bucket = new TokenBucket({ qps: 0.001, burst: 1 })
  await bucket.take()
  const abort = new AbortController()
  const waiting = Array.from({ length: 3 }, () => bucket.take(abort.signal))
  abort.abort(new Error('enough'))
  for (const one of waiting) await t.rejects(one, { message: 'enough' })
  await t.rejects(bucket.take(abort.signal), { message: 'enough' })
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
  const requests = Array.from({ length: 12 }, () => api.get('/', {}, { timeout: 1_000 }))
  t.ok((await elapsed(Promise.all(requests))) >= 1_100, 'the last of them waits for longer than a request may take')
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
