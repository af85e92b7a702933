/** Operations that take too long get a report; an examination of content has another limit, and its time does not count. */
import t from 'tap'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { RunningOperations } from '../../src/agent/running-operations.js'
import { directoryOf } from '../directories/objects.js'
import { SimulatedTime } from '../simulated-time.js'

const state = new DirectoryState(directoryOf([], { path: '/a' }))
const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

await t.test('an operation that has not ended in time is reported once, and not while it is paused', async (t) => {
  const time = new SimulatedTime(t)
  const stalled: string[] = []
  let lasting = 0
  const running = new RunningOperations({
    timeout: () => 200,
    stalled: ({ path }) => void stalled.push(path),
    lasting: () => {
      lasting += 1
    },
    lastingAfter: 100,
    signal: new AbortController().signal,
  })
  const phases: [number, string[]][] = []
  const work = running.run([state], async () => {
    await running.pause(state, async () => {
      await Promise.all([wait(500), running.pause(state, () => wait(300))])
      phases.push([running.seconds(state), [...stalled]])
    })
    await wait(500)
    phases.push([running.seconds(state), [...stalled]])
  })
  await time.during(work)
  const [[paused, before], [after, reported]] = phases as [[number, string[]], [number, string[]]]
  t.strictSame([before, reported], [[], ['/a']])
  t.strictSame([paused, after], [0, 0.5])
  t.strictSame([running.seconds(state), running.directories()], [0, []])
  t.equal(lasting, 1, 'not while it is paused')
})

await t.test('the end of the agent ends the reports on an operation that goes on', async (t) => {
  const time = new SimulatedTime(t)
  const ending = new AbortController()
  const running = new RunningOperations({
    signal: ending.signal,
    timeout: () => 20,
    stalled: () => t.fail('reported'),
    lasting: () => t.fail('reported'),
  })
  await running.run([state], async () => {
    await running.pause(state, () => {
      ending.abort()
      return Promise.resolve()
    })
    t.strictSame(running.directories(), [state])
    await time.advance(100)
  })
})
