import t from 'tap'
import { Deadline } from '../src/deadline.js'
import { underGarbageCollection } from './collect-garbage.js'

const aborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true })
  })

await t.test('every deadline fires in a process that collects garbage', async (t) => {
  const { signal } = new AbortController()
  const error = new Error('late')
  const all = Promise.all(Array.from({ length: 200 }, () => aborted(new Deadline(150, signal, () => error).signal)))
  const late = new Promise((resolve) => setTimeout(resolve, 30_000, []).unref())
  t.strictSame(
    await underGarbageCollection(Promise.race([all, late])),
    Array.from({ length: 200 }, () => error),
  )
})

await t.test('a deadline says whether the time was over or the caller gave up', async (t) => {
  const over = new Deadline(1, undefined)
  t.match(await aborted(over.signal), { name: 'TimeoutError' })
  t.equal(over.expired, true)

  const caller = new AbortController()
  const abandoned = new Deadline(60_000, caller.signal)
  const reason = new Error('going down')
  caller.abort(reason)
  t.equal(await aborted(abandoned.signal), reason)
  t.equal(abandoned.expired, false)
  abandoned.dispose()

  const tooLate = new Deadline(60_000, caller.signal)
  t.equal(tooLate.signal.reason, reason, 'a caller that gave up before')
  tooLate.dispose()
})

await t.test('met: the time no longer counts, the caller still does; disposed: neither does', async (t) => {
  const caller = new AbortController()
  const met = new Deadline(1, caller.signal)
  const disposed = new Deadline(1, caller.signal)
  met.met()
  disposed.dispose()
  await aborted(new Deadline(20, undefined).signal)
  t.equal(met.signal.aborted, false)
  caller.abort()
  t.equal(met.signal.aborted, true)
  t.equal(disposed.signal.aborted, false)
})

await t.test('a time longer than a timer can take is not over at once', async (t) => {
  const deadline = new Deadline(2 ** 32, undefined)
  await aborted(new Deadline(20, undefined).signal)
  t.equal(deadline.expired, false)
  deadline.dispose()
})
