/** The schema and the reader agree: what the schema refuses the reader refuses, and the other way round but for named exceptions. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Ajv from 'ajv'
import fc from 'fast-check'
import t from 'tap'
import { parseDocument } from 'yaml'
import { configurationSchema } from '../../src/config/schema.js'
import { deploy, yamlFiles } from '../deploy/manifests.js'
import { project } from '../project.js'
import { holds } from '../property.js'
import { apply, sound } from './broken-configuration.js'
import { brokenConfigurations } from './broken-configurations.js'
import { problemsOf } from './problems-of.js'
import { beyondSchema } from './beyond-schema.js'
import { odd, type Data } from './odd-values.js'

const shipped = join(project, 'schema/agent-configuration.schema.json')
const schema = configurationSchema()
const validate = new Ajv({ allErrors: true }).compile(schema)

/** What an editor asks the schema about; undefined where the text is no YAML, which it tells by itself. */
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

await t.test('the file that is shipped is what the command prints', (t) => {
  const text = `${JSON.stringify(schema, undefined, 2)}\n`
  t.equal(readFileSync(shipped, 'utf8'), text, 'node bin/holdfast.js schema > schema/agent-configuration.schema.json')
  const patterns = [...text.matchAll(/"pattern": ("(?:[^"\\]|\\.)*")/g)].map(([, quoted = '""']) =>
    String(JSON.parse(quoted)),
  )
  t.ok(patterns.length > 20)
  // As most editors read them.
  for (const pattern of patterns) t.doesNotThrow(() => new RegExp(pattern, 'u'), pattern)
  t.end()
})

await t.test('of the broken configurations the schema refuses all but those that no schema can express', (t) => {
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
  t.end()
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

type Place = readonly (string | number)[]

function placesIn(data: Data, at: Place = []): Place[] {
  if (typeof data !== 'object' || data === null) return [at]
  return [at, ...Object.entries(data).flatMap(([name, inner]) => placesIn(inner, [...at, name]))]
}

function withValue(data: Data, [name, ...rest]: Place, value: Data | undefined): Data | undefined {
  if (name === undefined) return value
  const copy = structuredClone(data) as Record<string | number, Data>
  const inner = withValue(copy[name] ?? null, rest, value)
  if (inner !== undefined) copy[name] = inner
  else if (Array.isArray(copy)) copy.splice(Number(name), 1)
  else Reflect.deleteProperty(copy, name)
  return copy
}

await t.test('what the schema refuses the reader refuses', async (t) => {
  const data = dataOf(complete) as Data
  const places = placesIn(data)
  const names = [
    'mode',
    'publish',
    'retire',
    'context',
    'timeout',
    'items',
    'into',
    'secrets',
    'combine',
    'http',
    'watch',
    'x',
  ]
  const place = fc.constantFrom(...places)
  const change = fc.oneof(
    { weight: 4, arbitrary: fc.record({ place, value: fc.constantFrom(...odd) }) },
    fc.record({ place, name: fc.constantFrom(...names), value: fc.constantFrom(...odd) }),
  )
  const refused = { by: { schema: 0, reader: 0 } }
  const property = fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 2 }), async (changes) => {
    let changed: Data | undefined = data
    for (const { place, value, ...more } of changes) {
      const at = 'name' in more ? [...place, more.name] : place
      try {
        changed = withValue(changed ?? null, at, value)
      } catch {
        // What an earlier change put there has no such place.
      }
    }
    const problems = await problemsOf(JSON.stringify(changed ?? null), { defaultNamespace: 'a' })
    if (problems !== 'none') refused.by.reader++
    if (validate(changed ?? null) === true) return
    refused.by.schema++
    assert.notEqual(problems, 'none', JSON.stringify(validate.errors))
  })
  await holds(t, 'no editor marks what holdfast takes', property, { runs: 150 })
  t.comment(refused.by)
  t.ok(refused.by.schema > 100, `the schema refused ${refused.by.schema} of ${refused.by.reader}`)
})

/** The rows of the tables on the page: the first two cells by the first one's word. */
const rows = new Map(
  [...page.matchAll(/^\| `([\w.]+)` +\| (.*?) +\|/gm)].map(([, name = '', second = '']) => [name, second]),
)

interface Described {
  readonly description: string
  readonly default?: string | number | boolean | readonly []
  readonly properties?: Readonly<Record<string, Described>>
  readonly items: Described
}

await t.test('the page has each field, with its default', (t) => {
  const { properties } = schema as unknown as Described
  const { apiVersion, kind, source, directories, ...top } = properties ?? {}
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
  t.end()
})
