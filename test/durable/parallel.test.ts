import t from 'tap'
import { inParallel } from '../../src/durable/parallel.js'

await t.test('after a failure nothing more is started, and what has been is waited for', async (t) => {
  const started: number[] = []
  const ended: number[] = []
  let fail!: (error: Error) => void
  const failing = new Promise<void>((_, reject) => (fail = reject))
  const working = inParallel([0, 1, 2, 3], 2, async (item) => {
    started.push(item)
    if (item === 0) await failing
    // The other one has its answer when the failure is known.
    await failing.catch(() => undefined)
    await new Promise((resolve) => setImmediate(resolve))
    ended.push(item)
  })
  fail(new Error('no'))
  await t.rejects(working, { message: 'no' })
  t.same([started, ended], [[0, 1], [1]])
})
