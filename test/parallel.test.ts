// Own process: it hears each rejection of its process.
import t from 'tap'
import { inOrder, inParallel } from '../src/parallel.js'

await t.test('after a failure inOrder starts no more, and waits for the started ones', async (t) => {
  const started: number[] = []
  const ended: number[] = []
  let fail!: (error: Error) => void
  const failing = new Promise<void>((_, reject) => (fail = reject))
  const working = inParallel([0, 1, 2, 3], 2, async (item) => {
    started.push(item)
    if (item === 0) await failing
    // The other one has its answer by the time of the failure.
    await failing.catch(() => undefined)
    await new Promise((resolve) => setImmediate(resolve))
    ended.push(item)
  })
  fail(new Error('no'))
  await t.rejects(working, { message: 'no' })
  t.same([started, ended], [[0, 1], [1]])
})

/** A task for each of some items, which ends when the test says so. */
function tasks(count: number) {
  const started: number[] = []
  const ends = new Map<number, { give: () => void; fail: (error: Error) => void }>()
  async function* items(): AsyncGenerator<number> {
    for (let item = 0; item < count; item++) yield await Promise.resolve(item)
  }
  const start = (item: number): Promise<string> => {
    started.push(item)
    return new Promise((resolve, reject) => {
      ends.set(item, { give: () => resolve(`result ${item}`), fail: reject })
    })
  }
  /** All that can go on without an end of a task has gone on. */
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  const end = (item: number): void => ends.get(item)?.give()
  const fail = (item: number): void => ends.get(item)?.fail(new Error(`${item} has failed`))
  return { started, items: items(), start, settled, end, fail }
}

await t.test('inOrder answers in the order of the items, with so many under way ahead of the consumer', async (t) => {
  const { started, items, start, settled, end } = tasks(5)
  const results: string[] = []
  const reading = (async () => {
    for await (const result of inOrder(items, 3, start)) results.push(result)
  })()
  await settled()
  t.strictSame([started, results], [[0, 1, 2], []])
  for (const item of [1, 2]) end(item)
  await settled()
  t.strictSame([started, results], [[0, 1, 2], []], 'the first one is waited for')
  end(0)
  await settled()
  t.strictSame(
    [started, results],
    [
      [0, 1, 2, 3, 4],
      ['result 0', 'result 1', 'result 2'],
    ],
  )
  for (const item of [4, 3]) end(item)
  await reading
  t.strictSame(results, ['result 0', 'result 1', 'result 2', 'result 3', 'result 4'])
})

await t.test('fewer items than may be under way give all of their results', async (t) => {
  const { items, start, settled, end } = tasks(2)
  const results: string[] = []
  const reading = (async () => {
    for await (const result of inOrder(items, 3, start)) results.push(result)
  })()
  await settled()
  for (const item of [1, 0]) end(item)
  await reading
  t.strictSame(results, ['result 0', 'result 1'])
})

await t.test('inOrder throws a failure in its turn, after the started ones have ended', async (t) => {
  const strays: unknown[] = []
  const stray = (reason: unknown): void => void strays.push(reason)
  process.on('unhandledRejection', stray)
  t.teardown(() => process.off('unhandledRejection', stray))
  const { started, items, start, settled, end, fail } = tasks(5)
  const results: string[] = []
  let ended = ''
  const reading = (async () => {
    for await (const result of inOrder(items, 3, start)) results.push(result)
  })().catch((error: unknown) => (ended = String(error)))
  await settled()
  fail(1)
  await settled()
  t.strictSame([results, ended, strays], [[], '', []], 'its turn has not come')
  end(0)
  await settled()
  t.strictSame([started, results, ended], [[0, 1, 2, 3], ['result 0'], ''])
  end(3)
  await settled()
  t.equal(ended, '', 'one is still under way')
  end(2)
  await reading
  t.strictSame([results, ended, strays], [['result 0'], 'Error: 1 has failed', []])
})

await t.test('a consumer that stops early waits for the started ones', async (t) => {
  const { started, items, start, settled, end } = tasks(5)
  let isOver = false
  const reading = (async () => {
    for await (const result of inOrder(items, 2, start)) if (result === 'result 0') break
    isOver = true
  })()
  await settled()
  end(0)
  await settled()
  t.strictSame([started, isOver], [[0, 1], false])
  end(1)
  await reading
  t.ok(isOver)
})
