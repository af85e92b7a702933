/** A reader of a damaged record gets its intact lines up to the first damaged one; and no call fails over it. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { completeHook, readPublication, recordObjects, replaceDirectory } from '../../src/durable/index.js'
import { holds } from '../property.js'
import { contents, scratch } from './scratch.js'
import { isKind } from '../crash/judge/names.js'

const parent = scratch(t)
const target = join(parent, 'certs')
// U+FFFD is what a decoder puts in place of a byte that is none of UTF-8's.
const objects = ['a', '\ufffd', 'ü'].map((name) => ({
  kind: 'Secret',
  namespace: 'n',
  name,
  uid: 'u',
  paths: ['a'],
  resourceVersion: '7',
}))
const { digest } = await replaceDirectory(target, { files: { a: '1' }, objects, hooks: ['one', 'two'] })
await completeHook(target, digest, 'one')
await recordObjects(target, digest, [{ ...objects[0], resourceVersion: '8' } as (typeof objects)[0]])
await recordObjects(target, digest, [{ ...objects[1], resourceVersion: '9' } as (typeof objects)[0]])
await completeHook(target, digest, 'two')

const [name = ''] = readdirSync(parent).filter(isKind('record'))
const file = join(parent, name)
const whole = readFileSync(file)
const lines = whole.toString().trimEnd().split('\n')

async function said(record: Buffer | readonly string[]): Promise<unknown> {
  writeFileSync(file, Buffer.isBuffer(record) ? record : record.map((line) => `${line}\n`).join(''))
  return readPublication(target)
}

/** What each number of intact lines says. */
const expected = await lines.reduce<Promise<unknown[]>>(
  async (before, _, index) => [...(await before), await said(lines.slice(0, index + 1))],
  said([]).then((nothing) => [nothing]),
)

await t.test('the lines say different things: the properties are about something', async (t) => {
  t.equal(lines.length, 6, 'the record, its commit, two hooks, two updates')
  t.equal(new Set(expected.map((publication) => JSON.stringify(publication))).size, lines.length + 1)
  t.same((expected.at(-1) as { pendingHooks?: unknown }).pendingHooks, [])
  t.match(expected.at(-1), {
    settled: true,
    objects: [{ resourceVersion: '8' }, { resourceVersion: '9' }],
  })
})

const linesBefore = (offset: number) => whole.subarray(0, offset).toString('latin1').split('\n').length - 1

await t.test('cut anywhere', async (t) => {
  const property = fc.asyncProperty(fc.nat({ max: whole.length }), async (at) => {
    assert.deepEqual(await said(whole.subarray(0, at)), expected[linesBefore(at)])
  })
  await holds(t, 'truncation', property, { runs: 100 })
})

await t.test('any byte changed, or lost, or put in', async (t) => {
  const damage = fc.record({
    at: fc.nat({ max: whole.length - 1 }),
    how: fc.constantFrom('changed', 'lost', 'put in'),
    byte: fc.nat({ max: 255 }),
  })
  const property = fc.asyncProperty(damage, async ({ at, how, byte }) => {
    const rest = whole.subarray(how === 'put in' ? at : at + 1)
    const damaged = Buffer.concat([whole.subarray(0, at), how === 'lost' ? Buffer.of() : Buffer.of(byte), rest])
    // A record whose first line is damaged is none; of the others, each counts by itself.
    const pieces = damaged.toString().split('\n').slice(0, -1)
    const left = pieces[0] === lines[0] ? pieces.filter((piece) => lines.includes(piece)) : []
    const says = await said(damaged)
    assert.deepEqual(says, await said(left))
  })
  await holds(t, 'damage', property)
})

await t.test('lines that are there more than once', async (t) => {
  const times = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: lines.length, maxLength: lines.length })
  const property = fc.asyncProperty(times, async (times) => {
    const repeated = lines.flatMap((line, index) => Array<string>(times[index] ?? 1).fill(line))
    assert.deepEqual(await said(repeated), expected.at(-1))
  })
  await holds(t, 'in a row', property, { runs: 50 })
  // Its objects are older than those of the appended lines, and must not replace them.
  for (let at = 1; at <= lines.length; at++) {
    const [record = ''] = lines
    t.same(
      await said([...lines.slice(0, at), record, ...lines.slice(at)]),
      expected.at(-1),
      `the record again, after ${at}`,
    )
  }
})

await t.test('any line under a right checksum that no program of ours writes', async (t) => {
  const foreign = fc.oneof(
    fc.json(),
    fc.string().filter((text) => !text.includes('\n')),
    fc.constantFrom('null', '0', '"settled"', '[]'),
  )
  const property = fc.asyncProperty(foreign, fc.nat({ max: lines.length }), async (text, at) => {
    const line = `${createHash('sha256').update(text).digest('hex')} ${text}`
    const found = await said([...lines.slice(0, at), line, ...lines.slice(at)])
    // What follows it may count or not: nothing else may be believed.
    assert.ok(
      [expected[at], at === 0 ? undefined : expected.at(-1)].some(
        (one) => JSON.stringify(one) === JSON.stringify(found),
      ),
      JSON.stringify(found),
    )
  })
  await holds(t, 'foreign lines', property, { runs: 100 })
})

await t.test('the next publication succeeds beside any record', async (t) => {
  let count = 0
  const property = fc.asyncProperty(
    fc.uint8Array({ maxLength: 200 }),
    fc.nat({ max: whole.length }),
    async (garbage, at) => {
      const [current = ''] = readdirSync(parent).filter(isKind('record'))
      const path = join(parent, current)
      writeFileSync(path, Buffer.concat([readFileSync(path).subarray(0, at), garbage]))
      const content = `version ${++count}`
      await replaceDirectory(target, { files: { a: content } })
      assert.deepEqual(contents(target), { a: content })
      assert.deepEqual((await readPublication(target))?.differences, [])
    },
  )
  await holds(t, 'recovery', property, { runs: 25 })
})
