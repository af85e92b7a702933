import t from 'tap'
import { Backoff, retryDelay } from '../src/backoff.js'
import { defaultTiming } from '../src/objects/kubernetes/timing.js'

void t.test('half a second, doubling to half a minute, each between its half and its whole', async (t) => {
  const whole = new Backoff(defaultTiming, () => 1)
  const expected = [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
  t.strictSame(
    expected.map(() => whole.next('connection')),
    expected,
  )
  const half = new Backoff(defaultTiming, () => 0)
  t.strictSame(
    expected.map(() => half.next('connection')),
    expected.map((delay) => delay / 2),
  )
  for (let failures = 0; failures < 10_000; failures++) whole.next('connection')
  t.equal(whole.next('connection'), 30_000, 'and no overflow')
})

void t.test('starts again after a success, and for another kind of failure', async (t) => {
  const backoff = new Backoff(defaultTiming, () => 1)
  backoff.next('connection')
  backoff.next('connection')
  t.equal(backoff.failures('connection'), 2)
  t.equal(backoff.failures('denied'), 0)
  t.equal(backoff.next('denied'), 500)
  t.equal(backoff.next('connection'), 500)
  backoff.next('connection')
  backoff.reset()
  t.equal(backoff.next('connection'), 500)
})

const longestDelay = 120_000

await t.test('half a second, doubling to two minutes', async (t) => {
  const whole = (failures: number) => retryDelay(failures, () => 1)
  t.strictSame(
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(whole),
    [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 120_000, 120_000],
  )
  t.ok(retryDelay(1000) <= longestDelay)
  const seen = new Set(Array.from({ length: 50 }, () => retryDelay(5)))
  t.ok(seen.size > 5, 'nodes do not come back in step')
})
