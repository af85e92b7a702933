// Own process: it measures memory.
import t from 'tap'
import type * as garbage from '../src/content-garbage.js'
import { contentPassed } from '../src/content-garbage.js'
import { until } from './until.js'

/** The module once more, through which nothing has passed yet. */
const fresh = async (): Promise<typeof garbage> =>
  (await import(`../src/content-garbage.js?${Math.random()}`)) as typeof garbage

const mebibyte = 1024 * 1024

await t.test('a second collection frees content that code still referred to at the first', async (t) => {
  let content: Buffer | undefined = Buffer.alloc(4 * mebibyte)
  const seen = new WeakRef(content)
  contentPassed(content.length)
  await new Promise(setImmediate)
  t.equal(seen.deref(), content)
  content = undefined
  await until('it is collected', () => seen.deref() === undefined)
  t.equal(seen.deref(), undefined)
})

await t.test('a process that stays collects once it is at rest, however little has passed, and seldom', async (t) => {
  const { contentPassed, returnMemoryWith } = await fresh()
  const timers = t.capture(globalThis, 'setTimeout', globalThis.setTimeout)
  contentPassed(1000)
  t.equal(timers().length, 0, 'a process that ends soon does not')
  let returned = 0
  returnMemoryWith(() => void (returned += 1))
  contentPassed(4 * mebibyte)
  const atOnce = returned
  await until('what calls for a collection at once has been collected', () => returned === atOnce + 2)
  t.equal(timers().length, 3, 'and the rest begins')
  contentPassed(1000)
  let content: Buffer | undefined = Buffer.alloc(mebibyte / 2)
  const seen = new WeakRef(content)
  contentPassed(content.length)
  content = undefined
  t.equal(timers().length, 2, 'anew each time')
  await until('freed memory is returned, and once more when V8 has ended on its threads', () => returned === atOnce + 4)
  t.equal(seen.deref(), undefined)
  timers()
  contentPassed(1000)
  t.equal(timers().length, 0, 'not again for a while')
  contentPassed(mebibyte)
  t.equal(timers().length, 1, 'unless much has passed')
})
