/** Dashboard and alerts name what the agent has; test/e2e/prometheus.test.ts gives them to a real Prometheus. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { PrometheusMetrics } from '../../src/agent/report/prometheus.js'
import { unknownFacts } from '../../src/agent/directory-state.js'
import { directoryOf } from '../directories/objects.js'
import { factsWithHooks, readingOf } from '../agent/report/reading.js'
import { read } from '../docs/pages.js'
import { project } from '../project.js'
import { documents } from './manifests.js'
import { alertQueries, alerts, dashboard, panelQueries, reportSeries } from './monitoring.js'

await t.test('each query names metrics that the agent has, with labels that they have', async (t) => {
  const metrics = new PrometheusMetrics('1.2.3', 'node-1')
  const moving = unknownFacts(directoryOf([], { path: '/srv/c', follows: '/srv/d' }))
  const failing = { ...factsWithHooks(['exec true']), notCurrentSince: new Date() }
  metrics.hook('/srv/a', 'exec true', 'failure')
  const also = { clientCertificate: new Date(), dropPending: ['/srv/b'] }
  const { text } = await metrics.expose(readingOf([moving, failing], also))
  const types = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  const labels = (name: string) => {
    const found = [...text.matchAll(new RegExp(`^${name}(?:_bucket)?\\{(.*)\\}`, 'gm'))]
    return new Set(found.flatMap(([, pairs = '']) => [...pairs.matchAll(/(\w+)="/g)].map(([, label]) => label)))
  }
  for (const { name } of reportSeries) types.set(name, 'gauge')
  const ofReports = new Map(reportSeries.map(({ name, each }) => [name, Object.keys(each.info?.labelsFromPath ?? {})]))
  const used = new Set<string>()
  for (const { of, expr } of [...panelQueries, ...alertQueries]) {
    const named = [...expr.matchAll(/\b((?:holdfast|process)_\w+?)(_bucket|_sum|_count)?\b(?:\{([^}]*)\})?/g)]
    t.ok(named.length > 0, of)
    for (const [, name = '', part, selector = ''] of named) {
      const known = types.get(name)
      t.ok(known, `${of}: ${name}`)
      t.equal(part !== undefined, known === 'histogram', `${of}: ${name} is a ${known ?? 'nothing'}`)
      // A counter appears in a rate or an increase.
      if (known !== 'gauge') t.match(expr, new RegExp(`(?:rate|increase)\\(${name}`), of)
      for (const [, label = ''] of selector.matchAll(/(\w+)(?==)/g)) {
        if (label !== 'instance')
          t.ok(labels(name).has(label) || ofReports.get(name)?.includes(label), `${of}: ${name} has ${label}`)
      }
      used.add(name)
    }
  }
  t.same(
    [...types.keys()].filter((name) => !used.has(name)),
    [],
    'each metric is on the dashboard or alerted on',
  )
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

await t.test('the series of reports are of fields that the definition has', async (t) => {
  const { spec } = documents('fleet/definition.yaml')[0] as unknown as {
    spec: { versions: { schema: { openAPIV3Schema: Schema } }[] }
  }
  const at = (from: Schema | undefined, path: readonly string[]): Schema | undefined =>
    path.reduce<Schema | undefined>((schema, field) => schema?.properties?.[field], from)
  const root = spec.versions[0]?.schema.openAPIV3Schema
  for (const { name, each } of reportSeries) {
    const found = at(root, each.gauge?.path ?? each.info?.path ?? [])
    t.ok(found, name)
    for (const path of Object.values(each.info?.labelsFromPath ?? {})) t.ok(at(found?.items, path), path.join('.'))
  }
})

interface AlertTest {
  readonly alertname: string
  readonly exp_alerts: readonly unknown[]
}

await t.test('each alert is tried when it is to fire, and before', async (t) => {
  const file = parse(readFileSync(join(project, 'test/deploy/alerts.yaml'), 'utf8')) as {
    tests: { alert_rule_test: AlertTest[] }[]
  }
  const tried = file.tests.flatMap(({ alert_rule_test: one }) => one)
  for (const fires of [true, false]) {
    const names = tried.filter(({ exp_alerts: found }) => found.length > 0 === fires).map(({ alertname }) => alertname)
    t.same([...new Set(names)].sort(), alerts.map(({ alert }) => alert).sort())
  }
})

await t.test('panels and alerts have a description', async (t) => {
  for (const { title, type, description, targets } of dashboard.panels) {
    if (type !== 'row') t.ok(description !== undefined && targets?.length, title)
  }
  t.equal(new Set(dashboard.panels.map(({ title }) => title)).size, dashboard.panels.length)
  const index = read('docs/alerts/README.md')
  for (const { alert, annotations } of alerts) {
    t.match(annotations, { summary: /\w/, description: /\.$/ }, alert)
    // The page says the meaning, the remedy and the end of the alert.
    t.equal(annotations['runbook_url'], `docs/alerts/${alert}.md`)
    t.match(index, new RegExp(`^\\| \\[\`${alert}\`\\]\\(${alert}\\.md\\) +\\| .*\\w.* \\| .*\\w.* \\|$`, 'm'), alert)
    const page = read(`docs/alerts/${alert}.md`)
    t.match(
      page,
      new RegExp(`^# ${alert}\n\nFor people on call: \\w[^]*\n## What to do\n\n    \\S[^]*\n## When it ends\n\n\\w`),
      alert,
    )
  }
})
