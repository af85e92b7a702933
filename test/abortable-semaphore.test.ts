import t from 'tap'
import { AbortableSemaphore } from '../src/abortable-semaphore.js'

const { signal } = new AbortController()

await t.test('a place that is free is given at once, and each further caller has its turn in order', async (t) => {
  const places = new AbortableSemaphore(2)
  const entered: number[] = []
  const enter = (caller: number) => places.enter(signal).then(() => void entered.push(caller))
  const all = [0, 1, 2, 3].map(enter)
  await Promise.all(all.slice(0, 2))
  t.strictSame(entered, [0, 1])
  places.leave()
  await all[2]
  t.strictSame(entered, [0, 1, 2])
  places.leave()
  await all[3]
  places.leave()
  places.leave()
  await Promise.all([4, 5].map(enter))
  t.strictSame(entered, [0, 1, 2, 3, 4, 5])
})

await t.test('a caller that gives up takes no place, and its patience runs only where it does not wait', async (t) => {
  const places = new AbortableSemaphore(1)
  const changes: string[] = []
  const patience = { pause: () => void changes.push('pause'), resume: () => void changes.push('resume') }
  await places.enter(signal, patience)
  t.strictSame(changes, [])
  const abort = new AbortController()
  const given = places.enter(abort.signal)
  const next = places.enter(signal, patience)
  abort.abort(new Error('enough'))
  await t.rejects(given, { message: 'enough' })
  await t.rejects(places.enter(abort.signal), { message: 'enough' })
  places.leave()
  await next
  t.strictSame(changes, ['pause', 'resume'])
})
