/** The chart's files; test/e2e/deploy.test.ts renders it with helm, and compares what the API server makes of it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { configurationSchema } from '../../src/config/schema.js'
import { project } from '../project.js'
import { deploy, documents } from './manifests.js'

const chart = join(deploy, 'helm/holdfast')
const read = (name: string): string => readFileSync(join(chart, name), 'utf8')

/** Go's regular expressions have neither lookahead nor \u. */
const isForeign = (pattern: unknown): boolean => typeof pattern === 'string' && /\(\?[=!<]|\\u/.test(pattern)

/** The schema without what helm cannot read: it then refuses less, and the agent the rest. */
function portable(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(portable)
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).flatMap(([name, value]: [string, unknown]) => {
    if (name === 'pattern' && isForeign(value)) return []
    if (name === 'not' && JSON.stringify(portable(value)) !== JSON.stringify(value)) return []
    const inner = portable(value)
    if (name !== 'allOf' || !Array.isArray(inner)) return [[name, inner] as const]
    const rest = inner.filter((one: unknown) => JSON.stringify(one) !== '{}')
    return rest.length === 0 ? [] : [[name, rest] as const]
  })
  return Object.fromEntries(entries)
}

await t.test('its values are checked as the configuration is', async (t) => {
  const values = JSON.parse(read('values.schema.json')) as { properties: Record<string, unknown> }
  const { $schema, title, ...schema } = configurationSchema()
  t.ok($schema && title)
  const expected = portable(schema)
  if (process.env['HOLDFAST_RECORD_SCHEMA'] === '1') {
    const written = { ...values, properties: { ...values.properties, configuration: expected } }
    writeFileSync(join(chart, 'values.schema.json'), `${JSON.stringify(written, undefined, 2)}\n`)
    values.properties['configuration'] = expected
  }
  t.same(values.properties['configuration'], expected, 'npm run schema')
  t.match(JSON.stringify(expected), /"pattern"/, 'of the patterns some are left')
  const known = parse(read('values.yaml')) as Record<string, unknown>
  t.same(
    Object.keys(known).sort(),
    Object.keys(values.properties)
      // Of a chart that depends on this one.
      .filter((name) => !['global', 'enabled'].includes(name))
      .sort(),
  )
})

await t.test('it has the version of the program, and the configuration of the kustomize tree', async (t) => {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string }
  t.match(parse(read('Chart.yaml')), { version, appVersion: version })
  const { configuration } = parse(read('values.yaml')) as { configuration: unknown }
  t.same(configuration, documents('base/holdfast.yaml')[0])
})
