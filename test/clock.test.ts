import t from 'tap'
import { clock } from '../src/clock.js'

await t.test('it goes on as performance.now() does, in milliseconds', async (t) => {
  // The first use of performance.now() loads modules, and another process may run between two calls: only a quick look counts.
  const ahead = (): number => {
    for (;;) {
      const [first, at, last] = [performance.now(), clock.now(), performance.now()]
      if (last - first < 1) return at - first
    }
  }
  const [before, began] = [ahead(), clock.now()]
  while (clock.now() - began < 5) await new Promise((resolve) => setImmediate(resolve))
  t.ok(Math.abs(ahead() - before) < 2, `by ${ahead() - before} ms otherwise`)
})
