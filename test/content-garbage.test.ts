import t from 'tap'
import { contentPassed } from '../src/content-garbage.js'
import { until } from './until.js'

const mebibyte = 1024 * 1024

await t.test('content that somebody still refers to at the first collection is collected by a second', async (t) => {
  let content: Buffer | undefined = Buffer.alloc(4 * mebibyte)
  const seen = new WeakRef(content)
  contentPassed(content.length)
  await new Promise(setImmediate)
  t.equal(seen.deref(), content)
  content = undefined
  await until('it is collected', () => seen.deref() === undefined, { within: 10_000 })
  t.equal(seen.deref(), undefined)
})
