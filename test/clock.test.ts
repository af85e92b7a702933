import t from 'tap'
import { clock } from '../src/clock.js'

await t.test('it goes on as performance.now() does, in milliseconds', async (t) => {
  const ahead = (): number => clock.now() - performance.now()
  const [before, began] = [ahead(), clock.now()]
  while (clock.now() - began < 5) await new Promise((resolve) => setImmediate(resolve))
  t.ok(Math.abs(ahead() - before) < 2, `by ${ahead() - before} ms otherwise`)
})
