/** JSON from a server costs no more than its length says, with any content. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { JsonRefused, mostValuesOfObject, parseBounded } from '../../../src/kubernetes/connection/bounded-json.js'
import { holds } from '../../property.js'

function errorOf(text: string): string {
  try {
    parseBounded(text)
    return 'taken'
  } catch (error) {
    assert.ok(error instanceof JsonRefused)
    return error.message
  }
}

const many = 32_768
const members = (count: number) => Array.from({ length: count }, (_, index) => `"k${index}":""`).join()

await t.test('parseBounded answers what JSON.parse answers, for any JSON', async (t) => {
  const property = fc.property(fc.json({ maxDepth: 6 }), (text) => {
    assert.deepStrictEqual(parseBounded(text), JSON.parse(text))
  })
  await holds(t, 'the same', property)
  const tricky = { 'a"': '\\', '\\"': ['{', '[', ',', '"{\\"'], '{': { ',': '\\\\"]' } }
  t.strictSame(parseBounded(JSON.stringify(tricky)), tricky)
})

await t.test('parseBounded refuses what JSON.parse refuses, without a word of it', async (t) => {
  const property = fc.property(fc.json(), fc.nat(), fc.constantFrom('', '"', '{', ']', ',', '\\'), (json, at, put) => {
    const place = at % (json.length + 1)
    const text = json.slice(0, place) + put + json.slice(place + 1)
    let expected: unknown
    try {
      expected = JSON.parse(text)
    } catch {
      assert.equal(errorOf(text), 'is not JSON')
      return
    }
    assert.deepStrictEqual(parseBounded(text), expected)
  })
  await holds(t, 'refusals', property)
})

await t.test('a map or list of too many members is their number, and everything beside it stays', async (t) => {
  t.equal(Object.keys(parseBounded(`{${members(many)}}`) as object).length, many)
  t.equal(parseBounded(`{${members(many + 1)}}`), many + 1)
  t.equal(parseBounded(`[${'0,'.repeat(many)}0]`), many + 1)
  const text = `{"a":[1,{${members(many + 1)}},"}"],"b":{${members(many + 2)}},"c":{"d":[]}}`
  t.strictSame(parseBounded(text), { a: [1, many + 1, '}'], b: many + 2, c: { d: [] } })
  const outer = `{${members(many)},"in":{${members(many + 1)}}}`
  t.equal(parseBounded(outer), many + 1, 'the outer of two')
  t.strictSame(parseBounded(`{"metadata":{"name":"x"},"data":{${members(1_000_000)}}}`), {
    metadata: { name: 'x' },
    data: 1_000_000,
  })
})

await t.test('parseBounded counts levels and values before it parses', async (t) => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  t.equal(errorOf(nested(10_000)), 'taken')
  t.equal(errorOf(nested(10_001)), 'is nested deeper than 10000 levels')
  t.equal(errorOf('['.repeat(16 * 1024 * 1024)), 'is nested deeper than 10000 levels')
  const lists = (members: number) => `[${Array.from({ length: 400 }, () => `[${'0,'.repeat(members - 1)}0]`).join()}]`
  t.equal(errorOf(lists(999)), 'taken', 'each list, its 999 members, and so 400,000 values')
  t.equal(errorOf(lists(1_000)), 'holds more than 400000 values')
  t.equal(errorOf(`[${`[${'{},'.repeat(30_000)}0],`.repeat(20)}0]`), 'holds more than 400000 values')
})

await t.test('parseBounded counts what wide containers of one object hold, and ends there', async (t) => {
  const maps = `{"a":[${'{},'.repeat(5e6)}0]}`
  t.strictSame(parseBounded(maps), { a: 5_000_001 }, 'in a list of objects')
  t.throws(() => parseBounded(maps, mostValuesOfObject), { message: 'holds more than 750000 values' })
  // The widest Secret that fits into a request of 3 MiB, with its managed fields, is nobody's mistake.
  const keys = Array.from({ length: 100_000 }, (_, index) => `k${index}`)
  const fields = keys.map((key) => `"f:${key}":{}`).join()
  const text = `{"data":{${keys.map((key) => `"${key}":""`).join()}},"fields":{${fields}}}`
  t.strictSame(parseBounded(text, mostValuesOfObject), { data: 100_000, fields: 100_000 })
})
