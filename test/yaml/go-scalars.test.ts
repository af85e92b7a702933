/** The meaning of an unquoted scalar for kubelet; test/e2e/kubelet-decode.test.ts compares with its own decoder. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { encodeJson, ExactNumber, hasExactNumbers } from '../../src/yaml/exact-number.js'
import { resolvePlain } from '../../src/yaml/go-scalars.js'
import { readManifestText } from '../../src/yaml/manifest-text.js'
import { holds } from '../property.js'

const exact = (digits: string) => new ExactNumber(digits)

const rows: readonly (readonly [unknown, ...string[]])[] = [
  [true, 'y', 'Y', 'yes', 'on', 'ON', 'True'],
  [false, 'n', 'No', 'off', 'FALSE'],
  [null, '', '~', 'null', 'NULL'],
  [8, '8', '+8', '010', '0o10', '0O10', '0x8', '0b1000', '0B1000', '8_', '08', '8.', '8.0', '.8e1'],
  [-8, '-8', '-010', '-0x8', '-0b1000', '-8e0', '-08'],
  [0.5, '.5', '0.5', '+.5', '5e-1'],
  [1e20, '1e20', '1E+20'],
  [exact('9007199254740993'), '9007199254740993', '0x20000000000001', '9_007_199_254_740_993'],
  [exact('-9223372036854775808'), '-9223372036854775808'],
  [exact('18446744073709551615'), '18446744073709551615'],
  [18446744073709551616, '18446744073709551616', '+18446744073709551616'],
  [undefined, '.inf', '-.Inf', '+.INF', '.nan', '.NaN', '.NAN'],
]

const texts = ['1e400', '.5e400', '_1', '._5', '.', '+', '-', '0x', '0b12', '0o8', '0xg', '1__x', '22:22', '190:20:30']
const others = [
  '2001-01-01',
  '2001-01-01 10:20:30',
  'tRUE',
  'nULL',
  '.Nan',
  '+.nan',
  '<<',
  '=',
  '1.2.3',
  '--1',
  '1e',
  '٣',
]

await t.test('resolvePlain reads numbers, booleans, nothing, and text as Go does', async (t) => {
  for (const [value, ...scalars] of rows) for (const text of scalars) t.strictSame(resolvePlain(text), value, text)
  for (const text of [...texts, ...others]) t.equal(resolvePlain(text), text)
})

await t.test('a block of text at the end of a file without a newline has none either', async (t) => {
  const value = async (text: string) => (await readManifestText(text)).value
  t.strictSame(await value('a: |\n b'), { a: 'b' })
  t.strictSame(await value('a: |+\n b'), { a: 'b' })
  t.strictSame(await value('a: >\n b\n c'), { a: 'b c' })
  t.strictSame(await value('a: |\n b\n'), { a: 'b\n' })
  t.strictSame(await value('a: |\n b\nc: d'), { a: 'b\n', c: 'd' })
})

await t.test('a manifest with a directive is refused, since kubelet takes one version of YAML alone', async (t) => {
  for (const text of ['%YAML 1.2\n---\na: b\n', '# c\n\n%YAML 1.536\n---\na: b\n', '%X\n---\na: b\n'])
    await t.rejects(readManifestText(text), { message: /a directive \(%\): remove it/ }, text)
  t.strictSame((await readManifestText('a: |\n %b\n')).value, { a: '%b\n' })
})

await t.test('a merge replaces the fields before it', async (t) => {
  const value = async (text: string) => (await readManifestText(text)).value
  t.strictSame(await value('{a: 1}').catch(() => 'JSON'), 'JSON', 'a text that starts so is JSON')
  t.strictSame(await value('x: {a: 1, <<: {a: 2, b: 2}, b: 3}'), { x: { a: 2, b: 3 } })
  t.strictSame(await value('x: {<<: [{a: 1}, {a: 2, b: 2}]}'), { x: { a: 1, b: 2 } }, 'the first of several')
  t.strictSame(await value('a: &a {b: 1}\nx: {<<: *a, "<<": 2}'), { a: { b: 1 }, x: { b: 1, '<<': 2 } })
  t.strictSame(await value('a: &x 1\nb: *x\nc: &x 2\nd: *x'), { a: 1, b: 1, c: 2, d: 2 })
  t.strictSame(await value('a: !!str 8\nb: !!int "8"\nc: !!float 8\nd: !!bool on\ne: !!null ""\nf: !!map {}'), {
    a: '8',
    b: 8,
    c: 8,
    d: true,
    e: null,
    f: {},
  })
})

await t.test('the reader reads JSON as JSON.parse does, and the writer writes it as JSON.stringify does', async (t) => {
  const json = fc.tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(undefined, ' ', '\t'))
  const same = fc.asyncProperty(json, async ([value, space]) => {
    const text = JSON.stringify(value, null, space)
    const plain: unknown = JSON.parse(text)
    assert.deepEqual((await readManifestText(text)).value, plain)
    assert.equal(encodeJson(plain), JSON.stringify(plain))
    // A number with further digits has the rest read in the other way, too.
    const widened = `{"exact":1.0,${text.replace(/^\s*\{/, '"rest":{')}}`
    assert.ok(hasExactNumbers(widened))
    assert.deepEqual((await readManifestText(widened)).value, { exact: exact('1.0'), rest: plain })
  })
  await holds(t, 'JSON', same)
})
