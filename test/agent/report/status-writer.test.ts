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

await t.test('a sign of life is due at intervals from the last one, whatever is written between them', async (t) => {
  const due: boolean[] = []
  const second = gate()
  const writer = new StatusWriter({
    heartbeat: 400,
    write: (isDue) => {
      due.push(isDue)
      if (due.filter(Boolean).length === 2) second.open()
      // The first that is due fails, and is due still.
      if (isDue && due.filter(Boolean).length === 1) return Promise.reject(new Error('EIO'))
      return Promise.resolve(isDue)
    },
    failed: () => {},
  })
  writer.changed()
  await second.opened
  await writer.close()
  t.strictSame(due.slice(0, 3), [false, true, true])
})
