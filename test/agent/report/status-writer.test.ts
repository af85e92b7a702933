import t from 'tap'
import { StatusWriter } from '../../../src/agent/report/status-writer.js'
import { SimulatedTime } from '../../simulated-time.js'

const gate = () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

await t.test('changes that come together are written together, and never two at once', async (t) => {
  const time = new SimulatedTime(t)
  const gates = [gate(), gate(), gate()]
  const begun = [gate(), gate(), gate()]
  let count = 0
  const writer = new StatusWriter({
    write: async () => {
      const index = count++
      // A read for the status can find a change, too.
      if (index === 0) writer.changed()
      begun[index]?.open()
      await gates[index]?.opened
      return false
    },
    failed: (error) => t.fail(String(error)),
  })
  writer.changed()
  writer.changed()
  await time.advance(150)
  await begun[0]?.opened
  t.equal(count, 1)
  await time.advance(60_000)
  t.equal(count, 1, 'the second waits for the first')
  gates[0]?.open()
  await time.advance(150)
  await begun[1]?.opened
  gates[1]?.open()
  gates[2]?.open()
  await writer.close()
  t.equal(count, 3, 'and the end is written')
  writer.changed()
  await time.advance(3_600_000)
  t.equal(count, 3)
})

await t.test('a write that fails is reported, and the next change is written', async (t) => {
  const failures: unknown[] = []
  const reported = gate()
  let writes = 0
  const fault = new Error('ENOSPC')
  const writer = new StatusWriter({
    write: () => (++writes === 1 ? Promise.reject(fault) : Promise.resolve(true)),
    failed: (error) => {
      failures.push(error)
      reported.open()
    },
  })
  writer.changed()
  await reported.opened
  t.strictSame(failures, [fault])
  await writer.close()
  t.equal(writes, 2)
})

await t.test('a write that fails is tried again by itself, without a change', async (t) => {
  const again = gate()
  let writes = 0
  const writer = new StatusWriter({
    write: () => {
      writes += 1
      if (writes <= 2) return Promise.reject(new Error('EMFILE'))
      again.open()
      return Promise.resolve(true)
    },
    failed: () => {},
  })
  writer.changed()
  await again.opened
  await writer.close()
  t.equal(writes, 4, 'and the end is written')
})

await t.test(
  'a sign of life is due five minutes after the last one, and still is after a write that failed',
  async (t) => {
    const time = new SimulatedTime(t)
    const due: boolean[] = []
    const writer = new StatusWriter({
      // The first that is due fails.
      write: (isDue) => (due.push(isDue) === 2 ? Promise.reject(new Error('EIO')) : Promise.resolve(isDue)),
      failed: () => {},
    })
    writer.changed()
    await time.advance(5 * 60_000 - 1)
    t.strictSame(due, [false])
    await time.advance(60_000)
    t.strictSame(due, [false, true, true])
    await time.advance(4 * 60_000 + 152)
    t.equal(due.length, 3, 'five minutes after the second try')
    await time.advance(60_000)
    t.strictSame(due, [false, true, true, true])
    writer.abandon()
  },
)
