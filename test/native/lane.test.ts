import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Lane, startInLane } from '../../native/index.js'
import { threadsOfLane } from '../../native/lane.js'

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

await t.test('without a lane a call starts at once, and nobody bounds it', (t) => {
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
  t.end()
})

await t.test('whoever is told of an end finds the next call started: the place was given on before', async (t) => {
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
