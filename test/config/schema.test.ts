/** The schema and the reader agree: what the schema refuses the reader refuses, and the other way round but for named exceptions. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Ajv from 'ajv'
import t from 'tap'
import { parseDocument } from 'yaml'
import { parseConfiguration } from '../../src/config/parse.js'
import { ConfigurationError } from '../../src/config/problem.js'
import { configurationSchema } from '../../src/config/schema.js'
import { deploy, yamlFiles } from '../deploy/manifests.js'
import { project } from '../project.js'
import { seed } from '../seed.js'
import { apply, sound } from './broken-configuration.js'
import { brokenConfigurations } from './broken-configurations.js'
import { file, problemsOf } from './problems-of.js'
import { beyondSchema } from './beyond-schema.js'
import { odd, samples, type Data } from './odd-values.js'

const shipped = join(project, 'schema/agent-configuration.schema.json')
const schema = configurationSchema()
const validate = new Ajv({ allErrors: true }).compile(schema)

/** The data that an editor checks by the schema; undefined where the text is no YAML, which the editor tells by itself. */
function dataOf(text: string): unknown {
  try {
    const document = parseDocument(text, { logLevel: 'silent' })
    return document.errors.length > 0 || document.warnings.length > 0 ? undefined : document.toJS()
  } catch {
    return undefined
  }
}

const page = readFileSync(join(project, 'docs/configuration.md'), 'utf8')
/** Nearly each field that there is, with a value. */
const complete = /```yaml\n([^]*?)```/.exec(page)?.[1] ?? ''

await t.test('the shipped schema is the one that the command prints', async (t) => {
  const text = `${JSON.stringify(schema, undefined, 2)}\n`
  if (process.env['HOLDFAST_RECORD_SCHEMA'] === '1') writeFileSync(shipped, text)
  t.equal(readFileSync(shipped, 'utf8'), text, 'npm run schema')
  const patterns = [...text.matchAll(/"pattern": ("(?:[^"\\]|\\.)*")/g)].map(([, quoted = '""']) =>
    String(JSON.parse(quoted)),
  )
  t.ok(patterns.length > 20)
  // As most editors read them.
  for (const pattern of patterns) t.doesNotThrow(() => new RegExp(pattern, 'u'), pattern)
})

await t.test('the schema refuses the broken configurations, but for those that no schema can express', async (t) => {
  const unused = new Set(Object.keys(beyondSchema))
  for (const configuration of brokenConfigurations) {
    const { mistake } = configuration
    const data = dataOf(apply(configuration))
    const refused = data === undefined || validate(data) === false
    const reason = Object.hasOwn(beyondSchema, mistake) ? beyondSchema[mistake] : undefined
    t.equal(refused, reason === undefined, `${mistake}: ${reason ?? 'the schema must refuse it'}`)
    unused.delete(mistake)
  }
  t.same([...unused], [], 'each exception is of a broken configuration')
})

await t.test('the examples pass, and name the schema in their first line', async (t) => {
  for (const text of [sound, complete]) {
    t.ok(validate(dataOf(text)), JSON.stringify(validate.errors))
    t.equal(await problemsOf(text), 'none')
  }
  const files = yamlFiles.filter((file) => /(?:^|\/)holdfast\.yaml$/.test(file))
  t.ok(files.length > 3)
  for (const file of files) {
    const text = readFileSync(join(deploy, file), 'utf8')
    t.ok(validate(dataOf(text)), `${file}: ${JSON.stringify(validate.errors)}`)
    const named = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1] ?? ''
    t.equal(join(deploy, dirname(file), named), shipped, file)
  }
  t.match(complete, /^# yaml-language-server: \$schema=\S+\n/)
})

interface Described {
  readonly description: string
  readonly default?: string | number | boolean | readonly []
  readonly properties?: Readonly<Record<string, Described>>
  readonly items: Described
}

type Place = readonly (string | number)[]

function placesIn(data: Data, at: Place = []): Place[] {
  if (typeof data !== 'object' || data === null) return [at]
  return [at, ...Object.entries(data).flatMap(([name, inner]) => placesIn(inner, [...at, name]))]
}

function withValue(data: Data, [name, ...rest]: Place, value: Data | undefined): Data | undefined {
  if (name === undefined || typeof data !== 'object' || data === null) return value
  const changed = Object.entries(data).flatMap(([key, inner]): [string, Data][] => {
    const put = key === String(name) ? withValue(inner, rest, value) : inner
    return put === undefined ? [] : [[key, put]]
  })
  return Array.isArray(data) ? changed.map(([, inner]) => inner) : Object.fromEntries(changed)
}

/** A third of the values, since to read all of them takes seconds; another seed, another third of them for a place. */
const drawn = (place: Place) => odd.filter((_, index) => (index + place.join().length + seed) % 3 === 0)

const head = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration' }
const { properties = {} } = schema as unknown as Described

/** The names of all fields in a part of the schema, or of the data. */
const fieldsIn = (part: unknown, what: 'schema' | 'data'): string[] => {
  if (typeof part !== 'object' || part === null) return []
  if (Array.isArray(part)) return part.flatMap((one) => fieldsIn(one, what))
  return Object.entries(part).flatMap(([name, inner]: [string, unknown]) => [
    ...(what === 'data' ? [name] : name === 'properties' ? Object.keys(inner as object) : []),
    ...fieldsIn(inner, what),
  ])
}

await t.test('the schema refuses no value of a directory that holdfast accepts', async (t) => {
  const check = new Ajv().compile({ ...properties['directories']?.items })
  const lacking = new Set(fieldsIn(properties['directories'], 'schema'))
  for (const name of ['path', 'contents', ...fieldsIn(samples, 'data')]) lacking.delete(name)
  t.same([...lacking], [], 'the samples have each field')
  const source = { namespace: 'a', kubernetes: { watch: 'namespaces' } }
  let [asked, taken] = [0, 0]
  for (const sample of samples) {
    for (const place of placesIn(sample).slice(1)) {
      const values = drawn(place)
      // All in one file, since each one takes time.
      const directories = values.map((value, index) => ({
        path: `/d/${index}`,
        contents: [{ secret: 's' }],
        ...(withValue(sample, place, value) as object),
      }))
      const broken = await brokenDirectories(JSON.stringify({ ...head, source, directories }))
      for (const [index, directory] of directories.entries()) {
        const takes = !broken.has(index)
        asked++
        if (takes) taken++
        if (takes && check(directory) !== true)
          t.fail(`${place.join('.')}: ${JSON.stringify(values[index])}, HOLDFAST_SEED=${seed}`)
      }
    }
  }
  t.comment(`${taken} of ${asked} were taken, HOLDFAST_SEED=${seed}`)
  t.ok(taken > asked / 20)
})

/** Which of the directories have a problem. */
async function brokenDirectories(text: string): Promise<Set<number>> {
  try {
    await parseConfiguration(text, file)
    return new Set()
  } catch (error) {
    assert.ok(error instanceof ConfigurationError)
    return new Set(error.problems.map(({ place }) => Number(/^directories\[(\d+)\]/.exec(place)?.[1])))
  }
}

await t.test('the schema refuses no value elsewhere that holdfast accepts', async (t) => {
  const directories = [{ path: '/srv/x', contents: [{ secret: 'a' }] }]
  const files = { source: { namespace: 'a', files: { path: '/objects' } } }
  const kubernetes = { kubeconfig: '/k', context: 'c', watch: 'objects', qps: 1, burst: 1 }
  const whole = {
    stateDirectory: '/a',
    requireProven: true,
    requireTrusted: true,
    driftInterval: '1m',
    operationTimeout: '1m',
    reload: 'auto',
    report: true,
    server: { address: 'localhost:0', hosts: ['metrics.example'] },
    source: { namespace: 'a', kubernetes },
  }
  const known = new Set(fieldsIn([whole, files, head, 'directories'], 'data'))
  const top = Object.entries(properties).filter(([name]) => name !== 'directories')
  for (const name of fieldsIn({ properties: Object.fromEntries(top) }, 'schema')) t.ok(known.has(name), name)
  for (const sample of [whole, files]) {
    for (const place of placesIn(sample).slice(1)) {
      for (const value of drawn(place)) {
        const data = { ...head, directories, ...(withValue(sample, place, value) as object) }
        if (validate(data) === true) continue
        const problems = await problemsOf(JSON.stringify(data), { defaultNamespace: 'a' })
        if (problems === 'none') t.fail(`${place.join('.')}: ${JSON.stringify(value)}, HOLDFAST_SEED=${seed}`)
      }
    }
  }
})

/** The rows of the tables on the page: the first two cells by the first one's word. */
const rows = new Map(
  [...page.matchAll(/^\| `([\w.]+)` +\| (.*?) +\|/gm)].map(([, name = '', second = '']) => [name, second]),
)

await t.test('the page of the configuration has each field, with its default', async (t) => {
  const { apiVersion, kind, source, directories, ...top } = properties
  t.ok(apiVersion && kind)
  const tables = { ...top, ...directories?.items.properties }
  t.ok(Object.keys(tables).length > 15)
  for (const [name, field] of Object.entries(tables)) {
    t.ok(rows.has(name), `${name} has a row`)
    const written = /^`"?([^`"]*)"?`$/.exec(rows.get(name) ?? '')?.[1]
    const given = field.default
    if (given !== undefined && typeof given !== 'object') t.equal(written, String(given), name)
    t.match(field.description, /^\S.*\S$/, name)
  }
  for (const [name, field] of Object.entries(source?.properties ?? {})) {
    for (const inner of Object.keys(field.properties ?? {})) t.ok(rows.has(`${name}.${inner}`), `${name}.${inner}`)
  }
})
