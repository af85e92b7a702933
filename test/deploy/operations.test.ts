import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { parseConfiguration } from '../../src/config/parse.js'
import { begin } from '../cli/holdfast.js'
import { scratch } from '../durable/scratch.js'
import { until } from '../until.js'
import { project } from '../project.js'
import { podFiles, podSpec } from './manifests.js'
import { alertQueries, reportSeries } from './monitoring.js'
import { yamlBlocks } from './operations-page.js'

const page = readFileSync(join(project, 'docs/operations.md'), 'utf8')

await t.test('each file and directory of the project that it names is there', async (t) => {
  const named = [...page.matchAll(/\bdeploy\/[\w./-]*\w/g)].map(([path]) => path)
  t.ok(named.length > 8)
  for (const path of named) t.ok(existsSync(join(project, path)), path)
  for (const [, path = ''] of page.matchAll(/\]\(([\w-]+\.md)/g)) t.ok(existsSync(join(project, 'docs', path)), path)
})

await t.test('its configurations pass the agent’s own parser', async (t) => {
  const configurations = yamlBlocks().filter(({ text }) => text.includes('kind: AgentConfiguration'))
  t.equal(configurations.length, 1)
  for (const { text, name } of configurations) {
    const { directories } = await parseConfiguration(text, `/etc/holdfast/${name}`)
    t.ok(directories.some(({ contents }) => contents.length > 0))
  }
})

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

await t.test('metrics that it and the alerts name are those that an agent has', async (t) => {
  const text = [page, ...alertQueries.map(({ expr }) => expr)].join('\n')
  const names = new Set(
    [...text.matchAll(/\b(holdfast_[a-z_]+)(\{[^}\n]*\})?/g)].map(([, name = '', labels = '']) => name + labels),
  )
  // Those come from kube-state-metrics.
  for (const { name } of reportSeries) names.delete(name)
  t.ok(names.size >= 6)
  const directory = scratch(t)
  mkdirSync(join(directory, 'objects'))
  const configuration = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: 'state',
    source: { files: { path: 'objects' } },
    directories: [
      {
        path: 'node/tls',
        contents: [{ secret: 'tls' }],
        afterPublish: [{ exec: ['/bin/true'] }],
      },
    ],
    server: { address: '127.0.0.1:0' },
  }
  writeFileSync(join(directory, 'holdfast.yaml'), JSON.stringify(configuration))
  const agent = begin(['agent', '--config', join(directory, 'holdfast.yaml')])
  t.teardown(() => agent.kill('SIGKILL'))
  let log = ''
  agent.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text))
  const port = await until('the agent has logged its address', () => /"port":(\d+)/.exec(log)?.[1])
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  // What `promtool check metrics` asks of them.
  for (const [, name = '', type] of metrics.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    t.match(metrics, new RegExp(`^# HELP ${name} \\S`, 'm'))
    t.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`)
    t.match(name, /^(?:holdfast|process)_[a-z_]+$/)
    t.notMatch(name, /_(count|sum|bucket|milliseconds|minutes|hours|gauge|counter|histogram)\b/)
  }
  for (const name of names) {
    const [, plain = '', label, operator, values = ''] = /^(\w+)(?:\{(\w+)(=~?)"(.*)"\})?$/.exec(name) ?? []
    t.match(metrics, new RegExp(`^# TYPE ${plain} `, 'm'), plain)
    if (label === undefined) continue
    for (const value of operator === '=~' ? values.split('|') : [values]) {
      t.match(metrics, new RegExp(`^${plain}\\{.*${label}="${value}"`, 'm'), `${plain} with ${label} ${value}`)
    }
  }
})
