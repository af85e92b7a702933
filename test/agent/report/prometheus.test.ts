import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { next, type DirectoryFacts } from '../../../src/agent/directory-state.js'
import { PrometheusMetrics } from '../../../src/agent/report/prometheus.js'
import { clock } from '../../../src/clock.js'
import { watchRestartReasons } from '../../../src/objects/types.js'
import { lastPassFileIn, newerPass, readLastPass } from '../../../src/agent/report/last-pass.js'
import { Node } from '../../cli/holdfast.js'
import { factsWithHooks, readingOf } from './reading.js'

/** What a pass of `sync` has found is what `status` shows, where no agent has reported since. */

async function samples(metrics: PrometheusMetrics, reading = readingOf([])): Promise<Map<string, number>> {
  const { text } = await metrics.expose(reading)
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').pop())]))
}

await t.test('every known label set begins at 0', async (t) => {
  const nothing = { ...factsWithHooks(['exec systemctl']), record: undefined }
  const found = await samples(new PrometheusMetrics('1.2.3', 'node-1'), readingOf([nothing]))
  t.equal(found.get('holdfast_build_info{version="1.2.3",node="node-1"}'), 1)
  for (const result of ['created', 'replaced', 'unchanged', 'failed', 'unknown', 'refused']) {
    t.equal(found.get(`holdfast_publishes_total{directory="/srv/a",result="${result}"}`), 0, result)
  }
  for (const result of ['success', 'failure']) {
    const name = `holdfast_hooks_total{directory="/srv/a",hook="exec systemctl",result="${result}"}`
    t.equal(found.get(name), 0, name)
  }
  for (const reason of watchRestartReasons) {
    t.equal(found.get(`holdfast_watch_restarts_total{reason="${reason}"}`), 0, reason)
  }
  t.equal(found.get('holdfast_watches_open'), 0)
  t.equal(found.get('holdfast_api_throttled_seconds_total'), 0)
  t.equal(found.get('holdfast_api_requests_total{verb="create",code="201"}'), 0)
  for (const verb of ['get', 'list', 'watch', 'create', 'patch']) {
    t.equal(found.get(`holdfast_api_requests_total{verb="${verb}",code="429"}`), 0, verb)
    t.equal(found.get(`holdfast_api_requests_total{verb="${verb}",code="<error>"}`), 0, verb)
  }
  for (const name of [
    'holdfast_last_publish_timestamp_seconds',
    'holdfast_operation_running_seconds',
    'holdfast_directory_ready',
    'holdfast_directory_current',
    'holdfast_directory_held',
    'holdfast_drift_total',
    'holdfast_last_confirmed_timestamp_seconds',
    'holdfast_publish_duration_seconds_count',
  ]) {
    t.equal(found.get(`${name}{directory="/srv/a"}`), 0, name)
  }
  for (const name of ['moving', 'failing_since_timestamp_seconds', 'recent_drifts', 'drop_pending'])
    t.notOk(found.has(`holdfast_directory_${name}{directory="/srv/a"}`), `no series of ${name}`)
  t.equal(found.get('holdfast_barrier_duration_seconds_count'), 0)
})

await t.test('what happens is counted, also before the first scrape', async (t) => {
  const metrics = new PrometheusMetrics('1', '')
  metrics.publish('/srv/a', 'created', 0.02)
  metrics.publish('/srv/a', 'refused', undefined)
  metrics.drift('/srv/a')
  metrics.hook('/srv/a', 'h', 'failure')
  metrics.watchRestarted('expired')
  const counted = {
    'holdfast_publishes_total{directory="/srv/a",result="created"}': 1,
    'holdfast_publishes_total{directory="/srv/a",result="refused"}': 1,
    'holdfast_publish_duration_seconds_count{directory="/srv/a"}': 1,
    'holdfast_drift_total{directory="/srv/a"}': 1,
    'holdfast_hooks_total{directory="/srv/a",hook="h",result="failure"}': 1,
    'holdfast_watch_restarts_total{reason="expired"}': 1,
  }
  const reading = readingOf([factsWithHooks(['h'])])
  t.match(Object.fromEntries(await samples(metrics, reading)), counted)
  t.match(Object.fromEntries(await samples(metrics, reading)), counted, 'a scrape counts nothing')
})

await t.test('a scrape reads what the agent knows', async (t) => {
  const metrics = new PrometheusMetrics('1', '')
  const facts = factsWithHooks([])
  const failing = { ...facts, intact: true, notCurrentSince: new Date(4000), confirmedAt: new Date(6000) }
  const certificates = [{ file: 'tls.crt', notBefore: new Date(0), notAfter: new Date(7000) }]
  const more = { waiting: ['publish', 'publish'], dropPending: ['/srv/b'], clientCertificate: new Date(9000) }
  const first = readingOf([{ ...failing, passed: { ...facts.passed, certificates } }], more)
  t.match(Object.fromEntries(await samples(metrics, { ...first, isValid: false })), {
    holdfast_configuration_valid: 0,
    holdfast_last_reload_successful_timestamp_seconds: 1,
    'holdfast_last_publish_timestamp_seconds{directory="/srv/a"}': 5,
    'holdfast_last_confirmed_timestamp_seconds{directory="/srv/a"}': 6,
    'holdfast_directory_ready{directory="/srv/a"}': 1,
    'holdfast_directory_current{directory="/srv/a"}': 0,
    'holdfast_directory_failing_since_timestamp_seconds{directory="/srv/a"}': 4,
    'holdfast_directory_drop_pending{directory="/srv/b"}': 1,
    'holdfast_certificate_not_after_timestamp_seconds{directory="/srv/a",file="tls.crt"}': 7,
    'holdfast_certificate_not_after_timestamp_seconds{directory="",file="client-certificate"}': 9,
    'holdfast_operations_waiting{operation="publish"}': 2,
    'holdfast_operations_waiting{operation="afterPublish"}': 0,
  })
  const condition = { status: 'True', reason: 'Published', message: '' } as const
  const current = next(failing, { kind: 'judged', type: 'Published', condition }, new Date())
  const renewed = { ...current.passed, certificates: certificates.map((one) => ({ ...one, file: 'new.crt' })) }
  const later = await samples(metrics, readingOf([{ ...current, passed: renewed }]))
  t.equal(later.get('holdfast_directory_current{directory="/srv/a"}'), 1)
  t.equal(later.get('holdfast_operations_waiting{operation="publish"}'), 0)
  t.ok(later.has('holdfast_certificate_not_after_timestamp_seconds{directory="/srv/a",file="new.crt"}'))
  t.notMatch([...later.keys()].join('\n'), /failing_since|drop_pending|tls\.crt|client-certificate/)
})

await t.test('a directory whose record is lost was not published in 1970', async (t) => {
  const facts = factsWithHooks([])
  const at = async (more: Partial<DirectoryFacts>) =>
    (await samples(new PrometheusMetrics('1', ''), readingOf([{ ...facts, ...more }]))).get(
      'holdfast_last_publish_timestamp_seconds{directory="/srv/a"}',
    )
  t.equal(await at({ record: undefined }), 0, 'never published')
  t.equal(await at({ record: undefined, desired: { digest: 'sha256:1', objects: [] } }), undefined)
})

await t.test('a hook that failed shows since when, until it has run, or is not due', async (t) => {
  const metrics = new PrometheusMetrics('1', '')
  const line = (hook: string): string =>
    `holdfast_hook_failing_since_timestamp_seconds{directory="/srv/a",hook="${hook}"}`
  const failing = async (due: readonly string[]): Promise<string[]> => {
    const found = await samples(metrics, readingOf([factsWithHooks(['h', 'i', 'j'], due)]))
    return [...found.keys()].filter((name) => name.startsWith('holdfast_hook_failing_since'))
  }
  const all = ['h', 'i', 'j']
  t.same(await failing(all), [])
  const before = Math.floor(Date.now() / 1000)
  for (const hook of all) metrics.hook('/srv/a', hook, 'failure')
  const shown = async () => (await samples(metrics, readingOf([factsWithHooks(all)]))).get(line('h')) ?? 0
  const since = await shown()
  t.ok(since >= before && since <= Date.now() / 1000, `${since}`)
  metrics.hook('/srv/a', 'h', 'failure')
  t.equal(await shown(), since, 'another failure does not begin anew')
  metrics.hook('/srv/a', 'i', 'success')
  t.same(await failing(all), [line('h'), line('j')])
  t.same(await failing(['h', 'other']), [line('h')])
  t.same(await failing(all), [line('h')], 'what was not due begins anew')
})

await t.test('differences on the disk are recent for an hour', async (t) => {
  const metrics = new PrometheusMetrics('1', '')
  const recent = async (): Promise<number | undefined> =>
    (await samples(metrics, readingOf([factsWithHooks([])]))).get(
      'holdfast_directory_recent_drifts{directory="/srv/a"}',
    )
  const real = { ...clock }
  // Whole: the sum of fractions may be less than an hour by their last bit.
  let at = Math.round(real.now())
  clock.now = () => at
  t.teardown(() => Object.assign(clock, real))
  t.equal(await recent(), undefined)
  metrics.drift('/srv/a')
  at += 40 * 60_000
  metrics.drift('/srv/a')
  t.equal(await recent(), 2)
  at += 30 * 60_000
  t.equal(await recent(), 1)
  for (let more = 0; more < 200; more++) metrics.drift('/srv/a')
  t.equal(await recent(), 100)
  at += 60 * 60_000
  t.equal(await recent(), undefined)
})

await t.test('the metrics count requests to the API in a bounded number of label sets', async (t) => {
  const metrics = new PrometheusMetrics('1', '')
  const { api } = metrics
  for (const status of [200, 429, 429, undefined]) api.requested('watch', status)
  for (let status = 100; status < 600; status++) api.requested('get', status)
  api.throttled(0.25)
  api.throttled(0.5)
  for (const change of [1, 1, -1] as const) api.watches(change)
  const found = Object.fromEntries(await samples(metrics))
  t.match(found, {
    'holdfast_api_requests_total{verb="watch",code="200"}': 1,
    'holdfast_api_requests_total{verb="watch",code="429"}': 2,
    'holdfast_api_requests_total{verb="watch",code="<error>"}': 1,
    'holdfast_api_requests_total{verb="get",code="404"}': 1,
    'holdfast_api_requests_total{verb="get",code="3xx"}': 100,
    holdfast_api_throttled_seconds_total: 0.75,
    holdfast_watches_open: 1,
  })
  const sets = Object.keys(found).filter((name) => name.startsWith('holdfast_api_requests_total{verb="get"'))
  t.ok(sets.length <= 20, `${sets.length} label sets for one verb, whatever a proxy answers`)
})

await t.test('the metrics of a dropped directory go, and those of a hook that is configured no more', async (t) => {
  const metrics = new PrometheusMetrics('1', '')
  await samples(metrics, readingOf([factsWithHooks(['old', 'new'])]))
  metrics.publish('/srv/a', 'created', 0.02)
  metrics.hook('/srv/a', 'old', 'failure')
  const found = await samples(metrics, readingOf([factsWithHooks(['new'])]))
  t.equal(found.get('holdfast_publishes_total{directory="/srv/a",result="created"}'), 1)
  t.notMatch([...found.keys()].join('\n'), /"old"/)
  metrics.drift('/srv/late')
  t.notMatch((await metrics.expose(readingOf([]))).text, /srv/)
})

/** The agent's figures of the process that it is, as Prometheus' client libraries name them. */
async function processFigures(): Promise<Record<string, number>> {
  const { text } = await new PrometheusMetrics('1', 'n').expose(readingOf([]))
  return Object.fromEntries(
    [...text.matchAll(/^(process_\w+) (\S+)$/gm)].map(([, name = '', value]) => [name, Number(value)]),
  )
}

await t.test(
  '/metrics has the processor time, memory, descriptors and start of the process, as the kernel has them',
  async (t) => {
    const before = process.cpuUsage()
    const found = await processFigures()
    t.same(Object.keys(found).sort(), [
      'process_cpu_seconds_total',
      'process_max_fds',
      'process_open_fds',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
    ])
    const after = process.cpuUsage()
    const seconds = found['process_cpu_seconds_total'] ?? NaN
    t.ok(seconds >= (before.user + before.system) / 1e6 && seconds <= (after.user + after.system) / 1e6)
    const resident = Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]) * 1024
    t.ok(Math.abs((found['process_resident_memory_bytes'] ?? NaN) - resident) < resident / 4, `${resident}`)
    t.equal(
      found['process_max_fds'],
      Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]),
    )
    const start = Date.now() / 1000 - process.uptime()
    t.ok(Math.abs((found['process_start_time_seconds'] ?? NaN) - start) <= 1)
  },
)

await t.test('each scrape has new figures, in at most 1,200 bytes', async (t) => {
  const before = await processFigures()
  const opened = Array.from({ length: 8 }, () => openSync('/dev/null', 'r'))
  const after = await processFigures()
  for (const descriptor of opened) closeSync(descriptor)
  t.ok((after['process_open_fds'] ?? NaN) >= (before['process_open_fds'] ?? NaN) + 4)
  t.ok((after['process_cpu_seconds_total'] ?? NaN) > (before['process_cpu_seconds_total'] ?? NaN))
  t.equal(after['process_start_time_seconds'], before['process_start_time_seconds'])
  const { text } = await new PrometheusMetrics('1', 'n').expose(readingOf([]))
  const own = text
    .split('\n')
    .filter((line) => line.includes('process_'))
    .join('\n')
  t.ok(own.length <= 1200, `${own.length} bytes`)
})

const web = { path: 'disk/web', contents: [{ secret: 'web' }] }

interface Shown {
  readonly directories: readonly {
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
  }[]
}

async function conditions(node: Node): Promise<string[]> {
  const { stdout } = await node.run('status', '-o', 'json')
  const [directory] = (JSON.parse(stdout) as Shown).directories
  return (directory?.conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`)
}

await t.test('status tells what sync has found', async (t) => {
  const node = new Node(t, [web])
  t.match(await node.run('sync'), { code: 1, stdout: /ObjectMissing/ })
  t.strictSame(await conditions(node), ['Published False ObjectMissing', 'Fresh Unknown NotConfirmed'])
  const { stdout } = await node.run('status', '-o', 'json')
  t.match(stdout, /nobody has asked the source since \d{4}-.*Z/)
  t.notMatch(stdout, /no agent has reported/)

  node.put('Secret', 'web', { key: '1' })
  t.match(await node.run('sync'), { code: 0 })
  t.equal((await conditions(node))[0], 'Published True Published')

  node.remove('web')
  t.match(await node.run('sync', '--dry-run'), { code: 1 })
  t.equal((await conditions(node))[0], 'Published True Published', 'a dry run records nothing')
  t.match(await node.run('sync'), { code: 1 })
  t.equal((await conditions(node))[0], 'Published False ObjectMissing', 'of what the disk holds, too')

  writeFileSync(node.path('disk/web/key'), 'changed')
  t.equal((await conditions(node))[0], 'Published False SourceUnavailable', 'the disk differs now: that is told')
})

await t.test('a pass that an agent has reported after is history', async (t) => {
  const node = new Node(t, [web])
  t.match(await node.run('sync'), { code: 1 })
  const agent = node.agent()
  await agent.logged('ObjectMissing')
  node.put('Secret', 'web', { key: '1' })
  await agent.logged('Published')
  t.equal(await agent.end('SIGTERM'), 0)
  t.equal((await conditions(node))[0], 'Published True Published')
  const pass = await readLastPass(node.path('state'))
  t.equal(newerPass(pass, undefined), pass)
  t.equal(newerPass(pass, '2000-01-01T00:00:00.000Z'), pass)
  t.equal(newerPass(pass, '2999-01-01T00:00:00.000Z'), undefined)
})

await t.test('without a state directory, or with a file that is none, sync and status go on', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { key: '1' })
  writeFileSync(node.path('state'), 'no directory')
  t.match(await node.run('sync'), { code: 0, stderr: /could not record the findings of this pass/ })
  rmSync(node.path('state'))
  t.match(await node.run('sync'), { code: 0 })
  for (const text of ['', '{}', '[]', 'null', '{"at":"x","directories":[{}]}']) {
    writeFileSync(lastPassFileIn(node.path('state')), text)
    t.equal(await readLastPass(node.path('state')), undefined, text)
    t.equal((await conditions(node))[0], 'Published True Published', text)
  }
})
