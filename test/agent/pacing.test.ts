/** When changes may be published, and their hooks run, by a clock that the test sets. */
import t from 'tap'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { Pacing } from '../../src/agent/pacing.js'
import { Workqueue } from '../../src/agent/workqueue.js'
import { debounceFor } from '../../src/config/directory.js'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'
import { SimulatedTime } from '../simulated-time.js'
import { directoryOf, secret, whole } from '../directories/objects.js'
import { published } from './outcome-scene.js'

const news = (first: number, last = first) => ({ first, last })

function scene(more: Parameters<typeof directoryOf>[1] = {}) {
  const clock = { now: 1_000_000 }
  const pacing = new Pacing(() => clock.now)
  const state = new DirectoryState(directoryOf([whole(secret('a'))], more))
  state.happened({ kind: 'passed', outcome: published })
  return { clock, pacing, state }
}

await t.test('a lone change without debounce is published at once', async (t) => {
  const { clock, pacing, state } = scene()
  for (let change = 0; change < 20; change++) {
    t.ok(pacing.publishFrom(state, news(clock.now)) <= clock.now)
    pacing.published(state)
    clock.now += 1_000
  }
})

await t.test('debounce waits for silence, and no longer than atMost', async (t) => {
  const { clock, pacing, state } = scene({ debounce: { quiet: 100, atMost: 5_000 } })
  const { now } = clock
  t.equal(pacing.publishFrom(state, news(now)), now + 100)
  t.equal(pacing.publishFrom(state, news(now, now + 90)), now + 190, 'each change begins the silence anew')
  t.equal(pacing.publishFrom(state, news(now, now + 4_990)), now + 5_000)
  state.happened({ kind: 'compared', publication: undefined })
  t.equal(pacing.publishFrom(state, news(now, now + 90)), now, 'the first publication waits for nothing')
})

await t.test('minInterval lets five publications follow at once, and one in each interval then', async (t) => {
  const { clock, pacing, state } = scene({ minInterval: 1_000 })
  const publishedAt: number[] = []
  const began = clock.now
  // An object that changes each 20 ms.
  for (; clock.now < began + 20_000; clock.now += 20) {
    if (pacing.publishFrom(state, news(clock.now)) > clock.now) continue
    pacing.published(state)
    publishedAt.push(clock.now - began)
  }
  t.strictSame(publishedAt.slice(0, 8), [0, 20, 40, 60, 80, 1_000, 2_000, 3_000])
  t.equal(publishedAt.length, 5 + 19)
  const last = news(clock.now - 20)
  t.equal(pacing.publishFrom(state, last), began + 20_000, 'the last change waits no longer than the interval')
  clock.now += 60_000
  for (let more = 0; more < 5; more++) {
    t.ok(pacing.publishFrom(state, news(clock.now)) <= clock.now)
    pacing.published(state)
  }
  t.equal(pacing.publishFrom(state, news(clock.now)), clock.now + 1_000, 'a pause saves up five, and no more')
})

await t.test('publications that wait for nothing leave no debt, and minInterval 0s has no bound', async (t) => {
  const { clock, pacing, state } = scene({ minInterval: 1_000 })
  for (let repair = 0; repair < 100; repair++) pacing.published(state)
  t.equal(pacing.publishFrom(state, news(clock.now)), clock.now + 1_000)
  state.happened({ kind: 'configured', configuration: { ...state.configuration, minInterval: 0 } })
  for (let change = 0; change < 100; change++) pacing.published(state)
  t.ok(pacing.publishFrom(state, news(clock.now)) <= clock.now)
})

await t.test('another minInterval counts from the last publication', async (t) => {
  const { clock, pacing, state } = scene({ minInterval: 3_600_000 })
  for (let change = 0; change < 5; change++) pacing.published(state)
  t.equal(pacing.publishFrom(state, news(clock.now)), clock.now + 3_600_000)
  state.happened({ kind: 'configured', configuration: { ...state.configuration, minInterval: 1_000 } })
  t.equal(pacing.publishFrom(state, news(clock.now)), clock.now + 1_000)
})

await t.test('the budget of one directory is not that of another', async (t) => {
  const { clock, pacing, state } = scene()
  const other = new DirectoryState(directoryOf([whole(secret('b'))]))
  for (let change = 0; change < 5; change++) pacing.published(state)
  t.ok(pacing.publishFrom(other, news(clock.now)) <= clock.now)
})

await t.test('a hook waits for hookInterval from its last beginning, for whichever directory that was', async (t) => {
  const { clock, pacing, state } = scene({ hookInterval: 10_000 })
  const other = new DirectoryState(directoryOf([whole(secret('b'))], { hookInterval: 3_000 }))
  state.happened({ kind: 'passed', outcome: { ...published, hooks: ['reload', 'own'] } })
  t.ok(pacing.hooksFrom(state) <= clock.now, 'the first run waits for nothing')
  pacing.hooksBegan([state])
  clock.now += 1_000
  other.happened({ kind: 'passed', outcome: { ...published, hooks: ['reload'] } })
  t.equal(pacing.hooksFrom(state), clock.now + 9_000)
  t.equal(pacing.hooksFrom(other), clock.now + 2_000, 'each directory has its own interval')
  pacing.hooksBegan([other])
  t.equal(pacing.hooksFrom(state), clock.now + 10_000)
  other.happened({ kind: 'passed', outcome: { ...published, hooks: ['another'] } })
  t.ok(pacing.hooksFrom(other) <= clock.now)
})

/** A queue paced as the agent's is, for a directory of these Secrets with the default debounce; tells when it runs, and for which of them. */
function paced(time: SimulatedTime, names: readonly string[]) {
  const contents = names.map((name) => whole(secret(name)))
  const state = new DirectoryState(directoryOf(contents, { debounce: debounceFor(contents), minInterval: 0 }))
  state.happened({ kind: 'passed', outcome: published })
  const pacing = new Pacing()
  const runs: { at: number; causes: readonly string[] }[] = []
  const queue = new Workqueue({
    groups: () => () => 'disk',
    failed: (error) => {
      throw error
    },
    newsFrom: (_, times) => pacing.publishFrom(state, times),
    run: (batch) => {
      for (const { causes } of batch.values()) runs.push({ at: performance.now(), causes })
      pacing.published(state)
      return Promise.resolve(new Map())
    },
  })
  /** Milliseconds from the change of these, so far apart, to the one publication of all of them. */
  const publish = async (changed: readonly string[], apart: number): Promise<number> => {
    const began = performance.now()
    const before = runs.length
    for (const [index, name] of changed.entries()) {
      if (index > 0) await time.advance(apart)
      queue.addNews('directory', name)
    }
    await time.advance(500)
    const [run, ...more] = runs.slice(before)
    if (run === undefined || more.length > 0) throw new Error(`${1 + more.length} publications`)
    t.strictSame(run.causes, changed)
    return run.at - began
  }
  return { queue, publish }
}

await t.test(`0 of 100 pairs within 50 ms are mixed, by the default debounce (${replay})`, async (t) => {
  const time = new SimulatedTime(t)
  const random = new Random(seed)
  const { queue, publish } = paced(time, ['a', 'b'])
  let mixed = 0
  for (let pair = 0; pair < 100; pair++) {
    await publish(random.chance(0.5) ? ['a', 'b'] : ['b', 'a'], random.below(51)).catch(() => mixed++)
  }
  t.equal(mixed, 0)
  await queue.close()
})

await t.test('a lone change of a directory of several objects waits at most 150 ms longer than of one', async (t) => {
  const time = new SimulatedTime(t)
  const [single, several] = [paced(time, ['a']), paced(time, ['a', 'b'])]
  const more = (await several.publish(['a'], 0)) - (await single.publish(['a'], 0))
  t.comment(`${more} ms`)
  t.ok(more <= 150)
  await Promise.all([single.queue.close(), several.queue.close()])
})
