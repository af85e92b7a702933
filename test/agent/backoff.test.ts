import t from 'tap'
import { retryDelay } from '../../src/agent/backoff.js'

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
