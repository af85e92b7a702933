/**
 * Of `npm run proof`: a real kube-state-metrics makes the series that deploy/prometheus/kube-state-metrics.yaml describes, from reports on a real
 * API server, as a user with the rights that this file names. It takes minutes to build, so it is no end-to-end test.
 */
import { mkdtempSync, openSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { reportOf } from '../../src/fleet/report-status.js'
import { alertQueries, panelQueries, reportSeries } from '../deploy/monitoring.js'
import { deploy } from '../deploy/manifests.js'
import { findProgram } from './assets.js'
import { Cluster } from './cluster.js'
import { endProcess, startProcess, workingDirectory } from './guard.js'
import { freePort } from './ports.js'
import { until } from '../until.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())
const { admin } = cluster.api
await cluster.kubectl(['apply', '-k', join(deploy, 'fleet')])
await cluster.kubectl(['wait', '--for=condition=established', '--timeout=60s', 'crd/nodepublications.holdfast.dev'])
await cluster.kubectl(['apply', '-f', join(deploy, 'prometheus/kube-state-metrics-rights.yaml')])

const [first, later] = [new Date('2026-01-02T03:04:05Z'), new Date('2026-01-02T04:04:05Z')]
const reports = '/apis/holdfast.dev/v1alpha1/nodepublications'

async function put(name: string, at: Date, directories: Parameters<typeof reportOf>[0]['directories']): Promise<void> {
  const metadata = { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid: `uid-${name}` }] }
  const object = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodePublication', metadata }
  await admin.call('POST', reports, object)
  const identity = { nodeUID: `uid-${name}`, bootID: 'boot', agentID: 'agent' }
  const status = reportOf({ agentVersion: '0', configuration: 'none', directories }, identity, at)
  await admin.demand(
    'PATCH',
    `${reports}/${name}/status`,
    { status },
    { 'content-type': 'application/merge-patch+json' },
  )
}

const current = { state: 'Current', reason: 'Published', sequence: 1, objects: [], confirmed: true } as const
await put('n1', first, [
  { ...current, path: '/a' },
  { ...current, path: '/b', state: 'Failed', reason: 'NoSpace', message: 'full' },
])
await put('n2', first, [])

const namespace = await cluster.namespace()
await namespace.createAccount('kube-state-metrics', {})
const subject = `--serviceaccount=${namespace.name}:kube-state-metrics`
await cluster.kubectl(['create', 'clusterrolebinding', 'series', '--clusterrole=holdfast-report-series', subject])
const kubeconfig = namespace.kubeconfig({ token: await namespace.token('kube-state-metrics') })
const [port, telemetryPort] = [await freePort(), await freePort()]
const log = openSync(join(mkdtempSync(join(workingDirectory, 'series-')), 'kube-state-metrics.log'), 'a')
const child = startProcess(
  await findProgram('kube-state-metrics'),
  [
    ...[`--kubeconfig=${kubeconfig}`, '--host=127.0.0.1', `--port=${port}`],
    ...['--telemetry-host=127.0.0.1', `--telemetry-port=${telemetryPort}`, '--custom-resource-state-only'],
    `--custom-resource-state-config-file=${join(deploy, 'prometheus/kube-state-metrics.yaml')}`,
  ],
  { stdio: ['ignore', log, log] },
)
t.teardown(() => endProcess(child, 'SIGTERM'))

const scraped = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
/** The samples so far, without the labels that kube-state-metrics gives each: the kind's group and version. */
async function samples(): Promise<string[]> {
  const lines = (await scraped()).split('\n').filter((line) => line.startsWith('holdfast_report_'))
  return lines.map((line) => line.replace(/customresource_\w+="[^"]*",?/g, '')).sort()
}

const seconds = (at: Date): string => (at.getTime() / 1000).toExponential().replace('e+', 'e+0')
const info = (labels: string): string => `holdfast_report_directory_info{${labels}} 1`
const [a, b] = [
  info('directory="/a",node="n1",reason="Published",state="Current"'),
  info('directory="/b",node="n1",reason="NoSpace",state="Failed"'),
]
const observed = (node: string, at: Date): string =>
  `holdfast_report_observed_timestamp_seconds{node="${node}"} ${seconds(at)}`

await t.test('kube-state-metrics makes a series of each report, and of each directory in it', async (t) => {
  await until('both reports have a series', async () => (await samples()).length >= 4)
  t.strictSame(await samples(), [a, b, observed('n1', first), observed('n2', first)].sort())
})

await t.test('a series follows its report, and goes with it', async (t) => {
  await put('n1', later, [{ ...current, path: '/b' }])
  const mended = info('directory="/b",node="n1",reason="Published",state="Current"')
  const expected = [mended, observed('n1', later), observed('n2', first)].sort()
  await until('n1 is mended', async () => JSON.stringify(await samples()) === JSON.stringify(expected))
  await admin.demand('DELETE', `${reports}/n1`)
  await until('n1 is gone', async () => (await samples()).length === 1)
  t.strictSame(await samples(), [observed('n2', first)])
})

await t.test('alerts and dashboard read series that kube-state-metrics makes', async (t) => {
  const text = await scraped()
  const read = [...panelQueries, ...alertQueries].flatMap(({ expr }) => expr.match(/holdfast_report_\w+/g) ?? [])
  t.strictSame(new Set(read), new Set(reportSeries.map(({ name }) => name)))
  for (const name of read) t.match(text, new RegExp(`^# TYPE ${name} (gauge|info)$`, 'm'))
})
