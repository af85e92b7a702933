import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { stringify } from 'yaml'
import { type Dialect, YamlError } from '../../src/yaml/parse.js'
import { readDocuments } from '../../src/yaml/go-documents.js'
import { readManifestText } from '../../src/yaml/manifest-text.js'
import { readJson, readYaml } from '../../src/yaml/read.js'
import { parseTree } from '../../src/yaml/tree.js'
import { holds } from '../property.js'

const canary = 'canary-of-a-secret'
type Read = (text: string) => Promise<readonly { readonly value: unknown }[]>

/** readDocuments reads objects and kubeconfigs. */
const every: Readonly<Record<string, Read>> = {
  any: valuesBy('any'),
  configuration: valuesBy('configuration'),
  Kubernetes: readDocuments,
}

function valuesBy(dialect: Dialect): Read {
  return async (text) => (await readYaml(text, dialect)).map((value) => ({ value }))
}

async function errorOf(work: () => unknown): Promise<YamlError> {
  try {
    await work()
  } catch (error) {
    if (error instanceof YamlError) return error
    throw error
  }
  throw new Error('it should have failed')
}

void t.test('documents come with their places, and those of their items', async (t) => {
  const [first, second] = await readDocuments('a: 1\n---\nitems:\n- x\n- y: 2\n')
  t.strictSame(first?.value, { a: 1 })
  t.strictSame(second?.position, { line: 3, column: 1 })
  t.strictSame(second?.positionAt(['items', 1]), { line: 5, column: 3 })
  t.strictSame(second?.positionAt(['items', 7]), { line: 4, column: 1 }, 'the holder')
})

void t.test('a value without a colon after a key with a question mark is refused, and not dropped', async (t) => {
  for (const text of ['? x\n- a\n', 'a: 1\nb:\n  ? x\n  - a\n', '? x\n- ']) {
    for (const [name, read] of Object.entries(every))
      t.match(await errorOf(() => read(text)), { problem: /MISSING_CHAR/ }, `${name}: ${JSON.stringify(text)}`)
    t.match(await errorOf(() => readManifestText(text)), { problem: /MISSING_CHAR/ })
    const problems: string[] = []
    const sink = { add: (_: unknown, __: string, message: string) => problems.push(message) }
    t.equal(await parseTree(text, sink), undefined)
    t.equal(problems.length, 1)
  }
  const [value] = await readYaml('? x\n: - a\n? y\n? z\n:\n- b\n', 'any')
  t.strictSame(value, { x: ['a'], y: null, z: ['b'] })
})

void t.test('a tag with a character that Go takes for none of a tag is refused in a manifest', async (t) => {
  t.match(await errorOf(() => readManifestText('a: !# Y')), { problem: /a tag with a character/ })
  t.strictSame((await readManifestText('a: !!str 1')).value, { a: '1' })
})

void t.test('a key in brackets that Go does not find on the line of its colon is refused in a manifest', async (t) => {
  const wide = ' '.repeat(1_100)
  const refused = [
    ...['a: {c\n : 1}', 'a: {"c"\n :1}', 'a: {c # x\n : 1}', 'a: {c\n d: 1}', 'a: {c: 1,\n\n d # x\n : 2}'],
    ...['a: {!!str\n c: 1}', 'a: {&x\n c: 1}', 'a: [&x\n c: 1]', 'a: [!!str # x\n c: 1]', 'b: &x c\na: {*x\n : 1}'],
    ...[`a: {c${wide}: 1}`, `a: {&x${wide}c: 1}`, `a: {"c"${wide}: 1}`],
  ]
  for (const text of refused)
    t.match(
      await errorOf(() => readManifestText(`${text}\n`)),
      { problem: /a field whose colon is on another line/ },
      text,
    )
  const taken = [
    ...['a: {? c\n : 1}', 'a: {? &x\n c: 1}', 'a: {c\n , d: 1}', 'a: { # &x\n c: 1}', 'a: {c: {d: 1\n }, e\n}'],
    ...['a: {\n &x c: 1,\n !!str d:\n 2}', 'a: {c: 1, # R&D!\n  d: "&\n : x"}'],
  ]
  for (const text of taken) t.ok((await readManifestText(`${text}\n`)).value, text)
})

void t.test('maps as keys of maps as keys are refused beyond ten levels, in little time', async (t) => {
  const before = process.cpuUsage()
  for (const text of ['? '.repeat(250), `${'{'.repeat(200)}a${': 1}'.repeat(200)}`]) {
    for (const dialect of ['any', 'configuration'] as const)
      t.match(await errorOf(() => readYaml(text, dialect)), { problem: /nested too deeply/ })
  }
  const { user } = process.cpuUsage(before)
  // They take 60 ms; a machine that other programs use has no fixed speed.
  t.ok(user < 5_000_000, `${user / 1000} ms`)
  const [value] = await readYaml('? { a: 1 }\n: b\n', 'any')
  t.strictSame(value, { '{ a: 1 }': 'b' })
})

void t.test('an error names its line and its kind, and quotes nothing', async (t) => {
  for (const [dialect, read] of Object.entries(every)) {
    const error = await errorOf(() => read(`a: 1\nb: "${canary}\n`))
    t.equal(error.problem, 'not valid YAML (MISSING_CHAR)', dialect)
    t.equal(error.position?.line, 3)
    t.notMatch(error.message, canary)
  }
  t.match(await errorOf(() => readJson(`{\n"a": ${canary}}`)), { problem: 'not valid JSON' })
})

void t.test('every dialect refuses aliases without end', async (t) => {
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]', 'b: &b [*a,*a,*a,*a,*a,*a,*a,*a]', 'c: &c [*b,*b,*b,*b,*b,*b,*b,*b]']
  for (const [dialect, read] of Object.entries(every)) {
    t.match(await errorOf(() => read('a: *nobody')), { problem: /an unknown alias/ }, dialect)
    t.match(await errorOf(() => read('a: &m {b: *m}')), { problem: /inside the value|unknown alias/ })
    const text = [...bomb, 'd: &d [*c,*c,*c,*c]', 'e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]', ''].join('\n')
    t.match(await errorOf(() => read(text)), { problem: /or too many aliases/ })
    t.strictSame((await read('a: &x [1]\nb: *x'))[0]?.value, { a: [1], b: [1] })
  }
})

void t.test('each reader reads what its own program reads', async (t) => {
  const first = async (text: string, read: Read) => (await read(text))[0]?.value
  t.equal(await first('0644', valuesBy('any')), 644)
  t.equal(await first('0644', readDocuments), 0o644)
  t.equal(await first('yes', valuesBy('any')), 'yes')
  t.equal(await first('yes', readDocuments), true)
  t.strictSame(await first('a: &a {x: 1}\nb: {<<: *a}', readDocuments), { a: { x: 1 }, b: { x: 1 } })
  t.match(await errorOf(() => readDocuments('b: |\n  \tz\n')), { problem: 'not valid YAML (a tab)' })
  const tabs = 'a: |\n  x:\n  \ty\n---\nb: |2\n  \tz\n'
  t.strictSame(
    (await readDocuments(tabs)).map(({ value }) => value),
    [{ a: 'x:\n\ty\n' }, { b: '\tz\n' }],
  )
})

void t.test('the reader reads every written YAML text as it was', async (t) => {
  const key = fc.string({ minLength: 1 }).filter((text) => text !== '__proto__' && text !== '<<')
  const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
  const tree = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(key, tie('node'), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).node
  const property = fc.asyncProperty(tree, async (value) => {
    const [read] = await readYaml(stringify(value, { aliasDuplicateObjects: false }), 'any')
    assert.deepEqual(read, value)
  })
  await holds(t, 'round trip', property)
})

void t.test('no reader takes a key twice, and each says where it stands again', async (t) => {
  for (const [dialect, read] of Object.entries({ any: every.any, Kubernetes: every.Kubernetes })) {
    for (const text of [
      'a: 1\nb: {c: 1}\nb: 2\n',
      'a: 1\nb: 1\n"b": {a: 1, a: 2}\n',
      '- 1\n- x\n- {a: 1, b: 2, a: 3}\n',
    ]) {
      const error = await errorOf(() => read?.(text))
      t.match(error, { problem: /DUPLICATE_KEY|stands twice/, position: { line: 3 } }, dialect)
    }
    t.ok(await read?.('a: {c: 1}\nb: {c: 1}\n'))
  }
})

void t.test('four times as many keys take no reader ten times the processor time', async (t) => {
  const textsOf = (quarters: number): Record<string, string> => {
    const keys = Array.from({ length: 5_000 * quarters }, (_, key) => `k${key}: ""`)
    const tabs = `data:\n  a: |\n    x\n${'    \ty\n'.repeat(40_000 * quarters)}`
    return { block: `data:\n  ${keys.join('\n  ')}\n`, flow: `data: {${keys.join(', ')}}\n`, tabs }
  }
  const readers: Record<string, (text: string) => Promise<unknown>> = {
    any: (text) => readYaml(text, 'any'),
    Kubernetes: readDocuments,
    manifest: readManifestText,
    tree: (text) => parseTree(text, { add: () => undefined }),
  }
  const [quarters, wholes] = [textsOf(1), textsOf(4)]
  for (const [reader, read] of Object.entries(readers)) {
    const used = async (text: string): Promise<number> => {
      const before = process.cpuUsage()
      await read(text)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1e6
    }
    for (const [style, whole] of Object.entries(wholes)) {
      const quarter = quarters[style] ?? ''
      // The first call of a reader is the compiler's, too.
      const times = [await used(quarter), await used(quarter)]
      const ratio = (await used(whole)) / Math.max(...times)
      t.ok(ratio < 10, `${reader}, ${style}: ${ratio.toFixed(1)} times for ${whole.length} characters`)
    }
  }
})
