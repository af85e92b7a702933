import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Semaphore } from '../../native/index.js'

await t.test('so many hold it at a time; the others come in order, each when one lets go', async (t) => {
  const semaphore = new Semaphore(2)
  const holders: string[] = []
  for (const name of ['a', 'b', 'c', 'd']) void semaphore.acquire().then(() => holders.push(name))
  await setImmediate()
  t.same(holders, ['a', 'b'])
  semaphore.release()
  await setImmediate()
  t.same(holders, ['a', 'b', 'c'])
  semaphore.release()
  await setImmediate()
  t.same(holders, ['a', 'b', 'c', 'd'])
  semaphore.release()
  void semaphore.acquire().then(() => holders.push('e'))
  void semaphore.acquire().then(() => holders.push('f'))
  await setImmediate()
  t.same(holders, ['a', 'b', 'c', 'd', 'e'], 'what nobody waited for is one place, not more')
  t.end()
})
