import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { PrometheusMetrics } from '../../src/agent/report/prometheus.js'
import { readingOf } from '../agent/report/reading.js'
import { project } from '../project.js'
import { podFiles, podSpec } from './manifests.js'
import { reportSeries } from './monitoring.js'

const page = readFileSync(join(project, 'docs/operations.md'), 'utf8')

await t.test('the capabilities that the page names are those that components add', async (t) => {
  const documented = [...page.matchAll(/^\| `([A-Z_]+)` +\|/gm)].map(([, name]) => name)
  const added = ['other-owners', 'signals'].flatMap((component) => {
    const file = join(project, 'deploy/components', component, 'kustomization.yaml')
    const { patches } = parse(readFileSync(file, 'utf8')) as { patches: { patch: string }[] }
    const operations = patches.flatMap(({ patch }) => parse(patch) as { path: string; value: unknown }[])
    return operations.filter(({ path }) => path.endsWith('/capabilities/add/-')).map(({ value }) => value)
  })
  t.same(documented, added)
  t.same(podSpec(podFiles.daemonSet).containers[0]?.securityContext.capabilities?.add, [])
})

await t.test('the page names metrics that an agent has, each as promtool check metrics asks', async (t) => {
  const { text } = await new PrometheusMetrics('1.2.3', 'node-1').expose(readingOf([]))
  const types = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  for (const [name, type] of types) {
    t.match(text, new RegExp(`^# HELP ${name} \\S`, 'm'))
    t.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`)
    t.match(name, /^(?:holdfast|process)_[a-z_]+$/)
    t.notMatch(name, /_(count|sum|bucket|milliseconds|minutes|hours|gauge|counter|histogram)\b/)
  }
  const named = new Set([...page.matchAll(/\bholdfast_[a-z_]+/g)].map(([name]) => name))
  // Those come from kube-state-metrics.
  for (const { name } of reportSeries) named.delete(name)
  t.ok(named.size >= 5)
  for (const name of named) t.ok(types.has(name), name)
})
