import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Lane, Semaphore, startInLane } from '../../native/index.js'
import { AsyncLocalStorage } from 'node:async_hooks'
import type * as loop from '../../native/loop.js'
import { threadsOfLane } from '../../native/loop.js'

await t.test('so many hold it at a time; the others come in order, each when one lets go', async (t) => {
  const semaphore = new Semaphore(2)
  const holders: string[] = []
  for (const name of ['a', 'b', 'c', 'd']) void semaphore.acquire().then(() => holders.push(name))
  await setImmediate()
  t.same(holders, ['a', 'b'])
  semaphore.leave()
  await setImmediate()
  t.same(holders, ['a', 'b', 'c'])
  semaphore.leave()
  await setImmediate()
  t.same(holders, ['a', 'b', 'c', 'd'])
  semaphore.leave()
  void semaphore.acquire().then(() => holders.push('e'))
  void semaphore.acquire().then(() => holders.push('f'))
  await setImmediate()
  t.same(holders, ['a', 'b', 'c', 'd', 'e'], 'what nobody waited for is one place, not more')
  t.end()
})

/** The module once more, with no lane yet: other tests of this process have made some. */
const fresh = async (name: string): Promise<typeof loop> =>
  (await import(`../../native/loop.js?${name}`)) as typeof loop

type Done = (error: Error | null, value?: string) => void

await t.test('a lane keeps four threads at most; the others start in order, each once another has ended', async (t) => {
  const lane = new Lane()
  const running: { name: string; end: Done }[] = []
  const ended: unknown[] = []
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  await lane.run(() => {
    t.equal(Lane.current, lane)
    for (const name of names) {
      startInLane<string>(
        (done) => running.push({ name, end: done }),
        (error, value) => ended.push(error ?? value),
      )
    }
    return Promise.resolve()
  })
  t.equal(threadsOfLane, 4, 'as many as libuv has')
  t.equal(Lane.current, undefined)
  t.equal(running.map(({ name }) => name).join(''), 'abcd')
  running[1]?.end(null, 'value of b')
  await setImmediate()
  t.equal(running.map(({ name }) => name).join(''), 'abcde')
  const failure = new Error('a failed')
  running[0]?.end(failure)
  t.equal(running.map(({ name }) => name).join(''), 'abcdef')
  t.same(ended, ['value of b', failure])
  for (const { end } of running.slice(2)) end(null, '')
  await lane.run(() => {
    for (const name of names)
      startInLane<string>(
        (done) => running.push({ name, end: done }),
        () => undefined,
      )
    return Promise.resolve()
  })
  t.equal(running.map(({ name }) => name).join(''), 'abcdefabcd', 'four places are free again, and no more')
})

await t.test('without a lane a call starts at once, without a bound', async (t) => {
  let started = 0
  let result: unknown
  const ends: Done[] = []
  for (let index = 0; index < 9; index++) {
    startInLane<string>(
      (done) => {
        started += 1
        ends.push(done)
      },
      (_, value) => (result = value),
    )
  }
  t.equal(started, 9)
  ends[8]?.(null, 'the value')
  t.equal(result, 'the value')
})

await t.test('an ended call has passed its place on before its caller learns of the end', async (t) => {
  const ends: Done[] = []
  const startedAtEnd: number[] = []
  await new Lane().run(() => {
    for (let index = 0; index <= threadsOfLane; index++)
      startInLane<string>(
        (done) => ends.push(done),
        () => startedAtEnd.push(ends.length),
      )
    return Promise.resolve()
  })
  ends[0]?.(null, '')
  t.same(startedAtEnd, [threadsOfLane + 1])
})

/** How often a context was tracked while `work` ran: each time costs all promises of the process. */
async function tracked(t: Test, work: () => Promise<unknown>): Promise<number> {
  const run = Reflect.get(AsyncLocalStorage.prototype, 'run') as (...args: unknown[]) => unknown
  const contexts = t.capture(AsyncLocalStorage.prototype, 'run', run)
  await work()
  return contexts().length
}

await t.test('one lane alone tracks nothing, and bounds what runs in it all the same', async (t) => {
  const { Lane, startInLane, threadsOfLane } = await fresh('alone')
  const lane = new Lane()
  const ends: Done[] = []
  const contexts = await tracked(t, () =>
    lane.run(async () => {
      await setImmediate()
      t.equal(Lane.current, lane)
      for (let index = 0; index <= threadsOfLane; index++)
        startInLane<string>(
          (done) => ends.push(done),
          () => undefined,
        )
    }),
  )
  t.equal(contexts, 0)
  t.equal(ends.length, threadsOfLane)
  t.equal(Lane.current, undefined)
  await t.rejects(
    lane.run(() => Promise.reject(new Error('failed'))),
    { message: 'failed' },
  )
  t.equal(Lane.current, undefined, 'nor after work that failed')
})

await t.test('with a second lane each finds its own, and what the first has begun stays in the first', async (t) => {
  const { Lane } = await fresh('second')
  const one = new Lane()
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  const begun = one.run(async () => {
    await gate
    return Lane.current
  })
  const two = new Lane()
  const contexts = await tracked(t, async () => {
    const current = async (): Promise<unknown> => {
      await setImmediate()
      return Lane.current
    }
    t.strictSame(await Promise.all([one.run(current), two.run(current)]), [one, two])
  })
  t.equal(contexts, 2)
  go()
  t.equal(await begun, one)
  t.equal(Lane.current, undefined)
})
