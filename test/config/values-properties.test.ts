/** Durations, modes, names and keys: the accepted values, against the rules of Go and Kubernetes written another way. */
import assert from 'node:assert/strict'
import { join, normalize } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { parseDirectoryMode, parseDurationFlag as parseFlag, parseFileMode } from '../../src/cli/words/option-values.js'
import { parseDuration } from '../../src/config/duration.js'
import { formatMode, parseOctal } from '../../src/config/mode.js'
import { isLabel, isObjectName } from '../../src/kubernetes-names.js'
import { ConfigurationError } from '../../src/config/problem.js'
import { parseConfiguration } from '../../src/config/parse.js'
import { decodeData, InvalidObjectError } from '../../src/kubernetes/reads/decode.js'
import { holds } from '../property.js'

/** The parts of a duration, as units of Go's time package in nanoseconds. */
const units = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 10n ** 9n,
  m: 60n * 10n ** 9n,
  h: 3600n * 10n ** 9n,
}
const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]))
const part = fc.record({
  whole: fc.nat({ max: 9999 }),
  fraction: fc.option(fc.stringMatching(/^[0-9]{0,6}$/), { nil: undefined }),
  unit,
})

const textOf = ({ whole, fraction, unit }: { whole: number; fraction: string | undefined; unit: string }) =>
  `${whole}${fraction === undefined ? '' : `.${fraction}`}${unit}`

/** Exact, as a fraction of nanoseconds: numerator over 10^6. */
function millionthsOf({
  whole,
  fraction = '',
  unit,
}: {
  whole: number
  fraction: string | undefined
  unit: keyof typeof units
}): bigint {
  return BigInt(`${whole}${fraction.padEnd(6, '0')}`) * units[unit]
}

await t.test('parseDuration sums its parts, exactly as numbers go', async (t) => {
  const property = fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
    const exact = Number(parts.reduce((sum, one) => sum + millionthsOf(one), 0n)) / 1e12
    const parsed = parseDuration(parts.map(textOf).join(''))
    assert.ok(parsed !== undefined && Math.abs(parsed - exact) <= exact * 1e-12, `${parsed}, not ${exact}`)
  })
  await holds(t, 'sums', property)
})

await t.test('flags and the configuration accept the same durations, and mean the same', async (t) => {
  const likely = fc.array(fc.constantFrom('1', '0', '9', '.', 's', 'm', 'h', 'ms', 'µs', ' ', '-', '+'), {
    maxLength: 8,
  })
  const written = fc.array(part, { maxLength: 2 }).map((parts) => parts.map(textOf).join(''))
  const text = fc.oneof(
    written,
    likely.map((pieces) => pieces.join('')),
    fc.string({ maxLength: 6 }),
  )
  let accepted = 0
  const property = fc.property(text, (text) => {
    // Days, for `--for 1d`, are the flags' alone.
    fc.pre(!/^[\d.]+d/.test(text))
    const configured = parseDuration(text)
    let flag: number | undefined
    try {
      flag = parseFlag(text)
    } catch (error) {
      assert.match(String(error), /It must be/)
    }
    assert.equal(configured === undefined || configured > 2 ** 31 - 1, flag === undefined)
    if (configured === undefined || flag === undefined) return
    accepted++
    assert.ok(Math.abs(configured - flag) <= 1)
    assert.equal(flag === 0, configured === 0)
  })
  await holds(t, 'one language', property)
  t.ok(accepted > 20, `${accepted} were durations`)
})

await t.test('parsers refuse every text quickly', async (t) => {
  // Quadratic time would be twenty seconds and more.
  const long = '1'.repeat(100_000)
  const before = process.cpuUsage()
  for (const text of [long, `${long}.${long}`, `${'1s'.repeat(100_000)}x`]) {
    t.equal(parseDuration(text), undefined)
    t.throws(() => parseFlag(text), /It must be a duration/)
  }
  for (const text of [`${'a-'.repeat(100)}-`, 'a'.repeat(100_000), `${'a.'.repeat(126)}-`]) {
    t.notOk(isObjectName(text))
    t.notOk(isLabel(text))
  }
  const { user } = process.cpuUsage(before)
  t.ok(user < 5_000_000, `${user / 1000} ms`)
})

await t.test('parseOctal reads each mode that formatMode writes', async (t) => {
  const property = fc.property(fc.nat({ max: 0o7777 }), (mode) => {
    assert.equal(parseOctal(formatMode(mode)), mode)
    assert.equal(parseOctal(mode.toString(8).padStart(3, '0')), mode)
    for (const [parse, allowed] of [
      [parseFileMode, 0o777],
      [parseDirectoryMode, 0o3777],
    ] as const) {
      const isListed = parse === parseDirectoryMode && /[46].{0,2}$/.test(formatMode(mode))
      if ((mode & ~allowed) !== 0) assert.throws(() => parse(formatMode(mode)), /bits that are not allowed/)
      else if (isListed) assert.throws(() => parse(formatMode(mode)), /needs x where it has r/)
      else assert.equal(parse(formatMode(mode)), mode)
    }
  })
  await holds(t, 'round trip', property)
  const anything = fc.oneof(fc.string({ maxLength: 5 }), fc.stringMatching(/^[0-9]{0,6}$/))
  const other = fc.property(anything, (text) => {
    const digits = Array.from(text)
    const octal = (digits.length === 3 || digits.length === 4) && digits.every((digit) => '01234567'.includes(digit))
    assert.equal(parseOctal(text), octal ? digits.reduce((sum, digit) => sum * 8 + Number(digit), 0) : undefined)
  })
  await holds(t, 'nothing else', other, { runs: 500 })
})

const nameLike = fc.oneof(
  fc
    .array(fc.constantFrom('a', 'z0', '-', '.', '_', 'A', '/', '\n', 'é', 'b'.repeat(63)), { maxLength: 8 })
    .map((parts) => parts.join('')),
  fc.string({ maxLength: 4 }),
)

/** RFC 1123, label by label. */
const isLabelByRule = (text: string) =>
  text.length > 0 &&
  Array.from(text).every((one) => 'abcdefghijklmnopqrstuvwxyz0123456789-'.includes(one)) &&
  !text.startsWith('-') &&
  !text.endsWith('-')

await t.test('names of objects and namespaces follow one rule everywhere', async (t) => {
  const property = fc.property(nameLike, (text) => {
    const name = text.length <= 253 && text.split('.').every(isLabelByRule)
    assert.equal(isObjectName(text), name)
    const label = text.length <= 63 && isLabelByRule(text)
    assert.equal(isLabel(text), label)
  })
  await holds(t, 'names', property, { runs: 1000 })
})

/** Whether the configuration takes this key. */
async function isConfigured(key: string): Promise<boolean> {
  const directories = [{ path: '/d', contents: [{ secret: 'a/b', items: [{ key, path: 'p' }] }] }]
  const source = { kubernetes: {} }
  const configuration = { source, apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration', directories }
  try {
    await parseConfiguration(JSON.stringify(configuration), 'f')
    return true
  } catch (error) {
    assert.ok(error instanceof ConfigurationError)
    assert.deepEqual(
      error.problems.map(({ place }) => place),
      ['directories[0].contents[0].items[0].key'],
      error.message,
    )
    return false
  }
}

await t.test(
  'the configuration accepts just the keys that an object can have, and each is a safe file name',
  async (t) => {
    t.ok(await isConfigured('tls.crt'))
    const key = fc.oneof(
      nameLike,
      fc.constantFrom('.', '..', '..data', '.a', '...', 'a..', '', 'a'.repeat(253), 'a'.repeat(254)),
    )
    let accepted = 0
    const property = fc.asyncProperty(key, async (key) => {
      let decoded = true
      try {
        decodeData('ConfigMap', { data: { [key]: '' } })
      } catch (error) {
        assert.ok(error instanceof InvalidObjectError)
        decoded = false
      }
      assert.equal(await isConfigured(key), decoded)
      if (!decoded) return
      accepted++
      assert.ok(Buffer.byteLength(key) <= 255, 'NAME_MAX')
      assert.equal(normalize(join('/d', key)), `/d/${key}`)
      assert.ok(!key.includes('/') && key !== '.' && key !== '..')
    })
    await holds(t, 'keys', property)
    t.ok(accepted > 20, `${accepted} were keys`)
  },
)
