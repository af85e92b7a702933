import t from 'tap'
import { SimulatedTime } from '../simulated-time.js'
import { Workqueue, type Batch, type NewsTimes, type QueueResult } from '../../src/agent/workqueue.js'

interface Run {
  readonly batch: Batch
  readonly keys: string[]
  end(results?: Record<string, QueueResult | Promise<QueueResult>>): void
  fail(error: Error): void
}

/** A queue whose runs the test ends by hand. */
function queueOf(runs: 'batch' | 'key', delay = 5) {
  const begun: Run[] = []
  const waiting: ((run: Run) => void)[] = []
  const faults: unknown[] = []
  const failures: number[] = []
  const waits: string[] = []
  /** How long the news of each key wait, as the test says: without a word, for ever. */
  const wait: {
    from: (key: string, times: NewsTimes) => number
    beside: (causes: ReadonlySet<string>) => number
  } = { from: () => Infinity, beside: () => -Infinity }
  const queue = new Workqueue({
    groups: () => (key) => (runs === 'batch' ? 'all' : key),
    delay: (count) => {
      failures.push(count)
      return delay
    },
    failed: (error) => faults.push(error),
    waits: (key) => waits.push(key),
    newsFrom: (key, times) => wait.from(key, times),
    besideNews: (_, __, causes) => wait.beside(causes),
    run: (batch) =>
      new Promise((resolve, reject) => {
        const run: Run = {
          batch,
          keys: [...batch.keys()],
          end: (results = {}) => resolve(new Map(Object.entries(results))),
          fail: reject,
        }
        const taker = waiting.shift()
        if (taker) taker(run)
        else begun.push(run)
      }),
  })
  const next = (): Promise<Run> => {
    const run = begun.shift()
    return run ? Promise.resolve(run) : new Promise((resolve) => waiting.push(resolve))
  }
  return { queue, next, begun, faults, failures, waits, wait }
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 20))

await t.test('keys of one turn go out in one batch, with their causes in order', async (t) => {
  const { queue, next } = queueOf('batch')
  queue.add('a', 'first')
  queue.add('b', 'only')
  queue.add('a', 'second')
  queue.add('a', 'first')
  const run = await next()
  t.strictSame(run.keys, ['a', 'b'])
  t.strictSame(run.batch.get('a')?.causes, ['first', 'second'])
  run.end()
  await queue.close()
})

await t.test('one batch in flight: what becomes due meanwhile is merged into the next', async (t) => {
  const { queue, next, begun } = queueOf('batch')
  queue.add('a', '1')
  const first = await next()
  t.ok(queue.pending('a'))
  queue.add('a', '2')
  queue.add('b', '1')
  queue.add('a', '3')
  await turn()
  t.equal(begun.length, 0, 'nothing begins beside it')
  first.end()
  const second = await next()
  t.strictSame(second.keys, ['a', 'b'])
  t.strictSame(second.batch.get('a')?.causes, ['2', '3'])
  second.end()
  await turn()
  t.notOk(queue.pending('a'))
  await queue.close()
})

await t.test('keys that run by themselves do not hold each other up, and none runs twice at once', async (t) => {
  const { queue, next, begun } = queueOf('key')
  queue.add('a', '1')
  queue.add('b', '1')
  const [a, b] = [await next(), await next()]
  t.strictSame([a.keys, b.keys], [['a'], ['b']])
  queue.add('a', '2')
  b.end()
  await turn()
  t.equal(begun.length, 0)
  a.end()
  t.strictSame((await next()).keys, ['a'])
})

await t.test('what fails runs again after its delay, which counts failures in a row', async (t) => {
  const { queue, next, failures, waits } = queueOf('batch')
  queue.add('a', 'x')
  ;(await next()).end({ a: 'retry' })
  ;(await next()).end({ a: 'retry' })
  const third = await next()
  t.strictSame(waits, ['a', 'a'], 'each time it waits, that is said')
  t.strictSame(third.batch.get('a')?.causes, ['retry'])
  third.end({ a: 'done' })
  await turn()
  queue.add('a', 'y')
  ;(await next()).end({ a: 'retry' })
  await next()
  t.strictSame(failures, [1, 2, 1])
})

await t.test('it says what each key is at', async (t) => {
  const { queue, next } = queueOf('batch', 60_000)
  t.teardown(() => queue.close())
  queue.add('a', 'news')
  t.match(queue.all(), [{ key: 'a', state: 'due', attempt: 1, nextTry: undefined }])
  const run = await next()
  queue.add('b', 'news')
  t.match(queue.all(), [
    { key: 'a', state: 'running', attempt: 1, nextTry: undefined },
    { key: 'b', state: 'due', attempt: 1 },
  ])
  run.end({ a: 'retry' })
  const second = await next()
  const [failed] = queue.all()
  t.match(failed, { key: 'a', state: 'waiting', attempt: 2 })
  t.ok(failed?.nextTry !== undefined && Math.abs(failed.nextTry - failed.since - 60_000) < 1)
  second.end()
  await turn()
  t.strictSame(
    queue.all().map(({ key }) => key),
    ['a'],
  )
})

await t.test('what waits runs again only when something is added', async (t) => {
  const { queue, next, begun } = queueOf('batch', 0)
  queue.add('a', 'x')
  ;(await next()).end({ a: 'wait' })
  await turn()
  t.equal(begun.length, 0)
  queue.add('a', 'changed')
  t.strictSame((await next()).batch.get('a')?.causes, ['changed'])
})

await t.test('a change does not wait for the delay of a failure', async (t) => {
  const { queue, next } = queueOf('batch', 1_000_000)
  queue.add('a', 'x')
  ;(await next()).end({ a: 'retry' })
  await turn()
  queue.add('a', 'changed')
  const run = await next()
  t.strictSame(run.batch.get('a')?.causes, ['changed'])
  run.end({ a: 'retry' })
  await queue.close()
})

await t.test('a run that rejects is an error of the program, reported and run again', async (t) => {
  const { queue, next, faults } = queueOf('batch')
  queue.add('a', 'x')
  const fault = new Error('a fault')
  ;(await next()).fail(fault)
  t.strictSame((await next()).batch.get('a')?.causes, ['retry'])
  t.strictSame(faults, [fault])
})

await t.test('a key that was forgotten does not run again, and never runs twice at once', async (t) => {
  const { queue, next, begun } = queueOf('key')
  queue.add('a', '1')
  const first = await next()
  queue.forget('a')
  first.end({ a: 'retry' })
  await turn()
  t.equal(begun.length, 0)
  queue.add('a', '2')
  const second = await next()
  queue.forget('a')
  queue.add('a', '3')
  await turn()
  t.equal(begun.length, 0, 'forgotten and added again while it runs: it waits for its end')
  second.end()
  t.strictSame((await next()).batch.get('a')?.causes, ['3'])
})

await t.test('close waits for what runs, and begins nothing', async (t) => {
  const { queue, next, begun } = queueOf('batch')
  queue.add('a', '1')
  const run = await next()
  queue.add('b', '1')
  let closed = false
  const closing = queue.close().then(() => (closed = true))
  await turn()
  t.notOk(closed)
  run.end({ a: 'retry' })
  await closing
  await turn()
  t.equal(begun.length, 0)
})

await t.test('news wait for their time, and go out together with their causes', async (t) => {
  const time = new SimulatedTime(t)
  const { queue, next, begun, wait } = queueOf('batch')
  t.teardown(() => queue.close())
  const asked: NewsTimes[] = []
  let open = Infinity
  wait.from = (_, times) => {
    asked.push(times)
    return open
  }
  queue.addNews('a', 'first')
  await time.advance(20)
  queue.addNews('a', 'second')
  await time.advance(20)
  t.equal(begun.length, 0)
  const { first, last } = asked.at(-1) ?? { first: 0, last: 0 }
  t.equal(last - first, 20, 'its time depends on the first and on the last of them')
  t.equal(first, asked[0]?.first)
  t.match(queue.all(), [{ key: 'a', state: 'waiting', since: first, attempt: 1 }])
  t.notOk(queue.pending('a'))
  t.ok(queue.expects('a'))
  open = performance.now() + 40
  queue.addNews('b', 'third')
  await time.advance(30)
  t.equal(begun.length, 0, 'not before their time')
  await time.advance(10)
  const run = await next()
  t.strictSame(run.keys, ['a', 'b'], 'keys whose times are close go out together')
  t.strictSame(run.batch.get('a')?.causes, ['first', 'second'])
  t.ok(Math.abs((run.batch.get('a')?.since ?? 0) - open) <= 5, 'it was due when its time had come')
  run.end()
  await time.advance(20)
  t.strictSame(queue.all(), [])
})

await t.test('news wait again behind a loop that was held up: the rest of a change may not be read yet', async (t) => {
  const time = new SimulatedTime(t)
  const { queue, next, begun, wait } = queueOf('batch')
  t.teardown(() => queue.close())
  wait.from = (_, { last }) => last + 30
  queue.addNews('a', 'one half')
  await time.advance(20)
  time.holdUp(120)
  // What comes from a server takes some turns of the loop until it is decoded.
  await time.advance(0)
  queue.addNews('a', 'the other half')
  await time.advance(20)
  t.equal(begun.length, 0)
  await time.advance(10)
  const run = await next()
  t.strictSame(run.batch.get('a')?.causes, ['one half', 'the other half'])
  run.end()
  await time.advance(200)
  t.equal(begun.length, 0)
})

await t.test('what is added otherwise does not wait for news, and leaves them waiting', async (t) => {
  const { queue, next, begun, wait } = queueOf('batch')
  t.teardown(() => queue.close())
  queue.addNews('a', 'news')
  queue.add('a', 'comparison')
  const run = await next()
  t.strictSame(run.batch.get('a')?.causes, ['comparison'])
  queue.addNews('a', 'more')
  run.end()
  await turn()
  t.equal(begun.length, 0)
  t.match(queue.all(), [{ key: 'a', state: 'waiting' }])
  wait.from = () => 0
  queue.add('a', 'again')
  const second = await next()
  t.strictSame(second.batch.get('a')?.causes, ['again', 'news', 'more'], 'what may go goes along')
  second.end()
})

await t.test('a cause that publishes the newest waits until the news beside it are whole', async (t) => {
  const { queue, next, begun, wait } = queueOf('batch')
  t.teardown(() => queue.close())
  let whole = Infinity
  wait.beside = (causes) => (causes.has('comparison') ? whole : -Infinity)
  queue.addNews('a', 'one half')
  queue.add('a', 'comparison')
  await turn()
  t.equal(begun.length, 0)
  whole = performance.now() + 20
  queue.addNews('a', 'the other half')
  const run = await next()
  t.ok(performance.now() >= whole, 'not before')
  t.strictSame(run.batch.get('a')?.causes, ['comparison'], 'their own time may be a later one')
  run.end()
})

await t.test('news do not put off another try, and may come before it', async (t) => {
  const time = new SimulatedTime(t)
  const { queue, next, wait } = queueOf('batch', 30)
  t.teardown(() => queue.close())
  queue.add('a', 'x')
  ;(await next()).end({ a: 'retry' })
  await time.advance(20)
  t.ok(queue.retries('a'))
  queue.addNews('a', 'news')
  const second = await time.during(next())
  t.strictSame(second.batch.get('a')?.causes, ['retry'])
  wait.from = () => 0
  second.end({ a: 'retry' })
  const third = await time.during(next())
  t.strictSame(third.batch.get('a')?.causes, ['news'], 'what is new may be the cure')
  t.notOk(queue.retries('a'))
  third.end()
})

await t.test('news that hurry go out once, now', async (t) => {
  const { queue, next, begun } = queueOf('batch')
  t.teardown(() => queue.close())
  queue.hurry('a')
  queue.addNews('a', 'one')
  queue.addNews('a', 'two')
  queue.hurry('a')
  const run = await next()
  t.strictSame(run.batch.get('a')?.causes, ['one', 'two'])
  run.end()
  await turn()
  t.strictSame([begun.length, queue.all().length], [0, 0])
})

await t.test('people hear once of news that wait long; a key that is forgotten forgets its news', async (t) => {
  const { queue, begun, waits, wait } = queueOf('batch')
  t.teardown(() => queue.close())
  wait.from = () => performance.now() + 60_000
  queue.addNews('a', 'one')
  queue.addNews('a', 'two')
  t.strictSame(waits, ['a'])
  wait.from = () => performance.now() + 100
  queue.addNews('b', 'one')
  t.strictSame(waits, ['a'], 'a short wait is not worth a word')
  queue.forget('a')
  queue.forget('b')
  t.strictSame(queue.all(), [])
  wait.from = () => 0
  queue.add('c', 'one')
  await turn()
  t.strictSame(begun[0]?.keys, ['c'])
  begun[0]?.end()
})

await t.test('a key whose result is to come runs until then; its group is free, and an end waits for it', async (t) => {
  const { queue, next } = queueOf('batch')
  queue.add('slow', 'start')
  queue.add('quick', 'start')
  let resolve!: (result: QueueResult) => void
  const removal = new Promise<QueueResult>((done) => (resolve = done))
  ;(await next()).end({ slow: removal })
  queue.add('slow', 'more')
  queue.add('quick', 'more')
  const second = await next()
  t.strictSame(second.keys, ['quick'])
  t.match(queue.all(), [
    { key: 'slow', state: 'running' },
    { key: 'quick', state: 'running' },
  ])
  second.end()
  resolve('done')
  const third = await next()
  t.strictSame(third.keys, ['slow'])
  let last!: (result: QueueResult) => void
  third.end({ slow: new Promise((done) => (last = done)) })
  await turn()
  let ended = false
  const closing = queue.close().then(() => (ended = true))
  await turn()
  t.notOk(ended)
  last('retry')
  await closing
})
