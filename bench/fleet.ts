/**
 * `npm run bench:fleet`: what the reports of many agents cost a real API server, and how soon each node has a change. It takes the control
 * plane of the end-to-end tests, with the FlowSchema of docs/scale.md; `HOLDFAST_FLEET_AGENTS` and `HOLDFAST_FLEET_REPORTS` set the extent.
 * docs/scale.md has the table. `HOLDFAST_FLEET_PROFILE=FILE` gets a profile of the API server while the nodes report a change (go tool pprof).
 */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { inParallel } from '../src/parallel.js'
import { deploy } from '../test/deploy/manifests.js'
import type { ApiObject } from '../test/e2e/api-client.js'
import { Cluster } from '../test/e2e/cluster.js'
import { Node } from '../test/e2e/node.js'
import { memory, processorTime } from '../test/e2e/process-figures.js'
import { grant } from '../test/e2e/rights.js'
import { until } from '../test/until.js'
import { executable, project } from '../test/project.js'
import type { FleetOrder, FleetState } from './fleet-agents.js'

t.setTimeout(1_800_000)

const count = Number(process.env['HOLDFAST_FLEET_AGENTS'] ?? 1_000)
const reportsToRead = Number(process.env['HOLDFAST_FLEET_REPORTS'] ?? 5_000)
/** Agents of one process. */
const together = 100
/** Milliseconds within which each agent reports a change. */
const spread = 31_000
/** Requests of this program at a time. */
const atATime = 20
const secrets = Array.from({ length: 10 }, (_, index) => `secret-${index}`)
const patience = { within: 300_000, every: 200 }
const reports = '/apis/holdfast.dev/v1alpha1/nodepublications'
const bootID = randomUUID()

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())
const { admin } = cluster.api
await cluster.kubectl(['apply', '-k', join(deploy, 'fleet')])
await cluster.kubectl(['wait', '--for=condition=established', '--timeout=60s', 'crd/nodepublications.holdfast.dev'])
const namespace = await cluster.namespace()
const data = { 'tls.crt': 'c'.repeat(3000), 'tls.key': 'k'.repeat(1000) }
for (const secret of secrets) await namespace.putSecret(secret, data)
await namespace.createAccount('agent', { secrets })
await cluster.kubectl(['apply', '-f', '-'], flowOf(`{ namespace: ${namespace.name}, name: agent }`))
const configuration = JSON.stringify({
  apiVersion: 'holdfast.dev/v1alpha1',
  kind: 'AgentConfiguration',
  source: { namespace: namespace.name, kubernetes: {} },
  report: true,
  directories: secrets.map((secret) => ({ path: `/etc/kubernetes/certs/${secret}`, contents: [{ secret }] })),
})

/** The objects that docs/scale.md recommends, for the service account of these agents. */
function flowOf(account: string): string {
  const [, block] =
    /^```yaml\n(apiVersion: flowcontrol.*?)^```$/ms.exec(readFileSync(join(project, 'docs/scale.md'), 'utf8')) ?? []
  const itsAccount = '{ namespace: holdfast, name: holdfast }'
  if (block?.includes(itsAccount) !== true)
    throw new Error('docs/scale.md has no FlowSchema for the service account of holdfast')
  return block.replace(itsAccount, account)
}

/** What the API server's Priority and Fairness has refused since its start, by priority level and reason. */
async function refusals(): Promise<Record<string, number>> {
  const { body } = await admin.call('GET', '/metrics')
  const lines = String(body).matchAll(/^apiserver_flowcontrol_rejected_requests_total\{(.*)\} (\S+)$/gm)
  return Object.fromEntries(
    [...lines].map(([, labels = '', value]) => {
      const [level, reason] = ['priority_level', 'reason'].map(
        (label) => new RegExp(`${label}="([^"]*)"`).exec(labels)?.[1],
      )
      return [`${level}: ${reason}`, Number(value)]
    }),
  )
}

/** Processor time, now. */
const figures = () => ({
  cpu: processorTime(cluster.api.pid),
  etcd: processorTime(cluster.etcd.pid),
  at: performance.now(),
})
type Figures = ReturnType<typeof figures>
const load = (): string => loadavg()[0]?.toFixed(0) ?? ''
const seconds = (milliseconds: number): number => Number((milliseconds / 1000).toFixed(1))

async function createNode(name: string): Promise<ApiObject> {
  const labels = { 'kubernetes.io/os': 'linux' }
  const node = await admin.demand('POST', '/api/v1/nodes', { metadata: { name, labels } })
  const fields = ['architecture', 'containerRuntimeVersion', 'kernelVersion', 'kubeProxyVersion', 'kubeletVersion']
  const more = ['machineID', 'operatingSystem', 'osImage', 'systemUUID']
  const nodeInfo = { ...Object.fromEntries([...fields, ...more].map((field) => [field, 'x'])), bootID }
  const merge = { 'content-type': 'application/merge-patch+json' }
  await admin.demand('PATCH', `/api/v1/nodes/${name}/status`, { status: { nodeInfo } }, merge)
  return node
}

/** Writes a profile of the API server over so many seconds, where the environment asks for one. */
async function profile(seconds: number): Promise<void> {
  const file = process.env['HOLDFAST_FLEET_PROFILE']
  if (file === undefined) return
  const { certificate, key } = cluster.api.adminPair
  const tls = ['--cacert', cluster.api.authority.certificate, '--cert', certificate, '--key', key]
  await promisify(execFile)('curl', [
    '-sS',
    ...tls,
    '-o',
    file,
    `${cluster.api.url}/debug/pprof/profile?seconds=${seconds}`,
  ])
}

/** name -> resourceVersion of the reports that agents have written. */
async function written(): Promise<Map<string, string>> {
  // A server that has just started has not read them yet, and answers 429.
  const list = (await until('the reports are listed', () => admin.demand('GET', reports))) as unknown as {
    items: (ApiObject & { status?: object })[]
  }
  return new Map(
    list.items.flatMap(({ metadata, status }) => (status ? [[metadata.name, metadata.resourceVersion] as const] : [])),
  )
}

class Agents {
  readonly #processes: ChildProcess[] = []
  readonly #states = new Map<ChildProcess, FleetState>()

  constructor({ nodes, ...order }: FleetOrder) {
    const program = fileURLToPath(new URL('./fleet-agents.js', import.meta.url))
    for (let at = 0; at < nodes.length; at += together) {
      const child = fork(program, { execArgv: ['--optimize-for-size'] })
      child.on('message', (state: FleetState) => this.#states.set(child, state))
      child.send({ ...order, nodes: nodes.slice(at, at + together) })
      this.#processes.push(child)
    }
  }

  get state(): FleetState {
    const states = [...this.#states.values()]
    const sum = (figure: 'confirmed' | 'watches' | 'requests' | 'unanswered' | 'refused'): number =>
      states.reduce((all, state) => all + state[figure], 0)
    return {
      confirmed: sum('confirmed'),
      watches: sum('watches'),
      requests: sum('requests'),
      unanswered: sum('unanswered'),
      refused: sum('refused'),
      received: states.flatMap(({ received }) => received),
    }
  }

  reset(): void {
    this.#states.clear()
    for (const child of this.#processes) child.send('reset')
  }

  end(): void {
    for (const child of this.#processes.splice(0)) child.disconnect()
  }
}

const names = Array.from({ length: count }, (_, index) => `node-${String(index).padStart(4, '0')}`)
const nodes: FleetOrder['nodes'][number][] = []
await inParallel(names, atATime, async (name) => {
  const token = await namespace.token('agent', await createNode(name), 'Node')
  nodes.push({ name, kubeconfig: namespace.kubeconfig({ token }) })
})
const plain = await Node.create(t, namespace, {
  report: true,
  allowed: {},
  kubeconfig: nodes[0]?.kubeconfig ?? '',
  environment: { NODE_NAME: 'memory' },
  directories: secrets.map((secret) => ({ path: secret, contents: [{ secret }] })),
})
await grant(
  cluster,
  (await plain.agent.run('rbac', '--service-account', `${namespace.name}/agent`)).stdout,
  namespace.name,
  'agent',
)
const references = secrets.map((name) => ({ kind: 'Secret' as const, namespace: namespace.name, name }))
const agents = new Agents({ nodes, configuration, references, bootID })
t.teardown(() => agents.end())
const watches = count * secrets.length

await t.test(`${count} agents of ${secrets.length} Secrets start and report`, async (t) => {
  const before = figures()
  await until(
    'each object is confirmed',
    () => agents.state.confirmed === watches && agents.state.watches === watches,
    patience,
  )
  const confirmed = performance.now()
  await until('each node has reported', async () => (await written()).size === count, { within: 300_000, every: 2_000 })
  const after = figures()
  const { requests, refused } = agents.state
  t.comment(
    JSON.stringify({
      load: load(),
      confirmedAfter: seconds(confirmed - before.at),
      reportedAfter: seconds(after.at - before.at),
      requests,
      refused,
      refusedBy: await refusals(),
      apiServerMiB: Math.round(memory(cluster.api.pid, 'Anonymous') / 1024),
    }),
  )
  t.equal(refused, 0, 'no 429')
})

await t.test('a Secret that all want reaches each agent, and each reports it', async (t) => {
  const known = await written()
  const idle = figures()
  await sleep(10_000)
  const before = figures()
  const share = { cpu: (before.cpu - idle.cpu) / 10_000, etcd: (before.etcd - idle.etcd) / 10_000 }
  agents.reset()
  await sleep(1_000)
  const began = figures()
  const profiled = profile(32)
  const changed = Date.now()
  await namespace.putSecret('secret-0', { ...data, 'tls.crt': 'd'.repeat(3000) })
  await until('each agent has it', () => agents.state.received.length === count, patience)
  const received = figures()
  // A list of all reports costs as much as some of them: the figures are from before it.
  let reported = received
  let listed = received
  let lists = 0
  await sleep(spread)
  await until(
    'each node has reported it',
    async () => {
      reported = figures()
      const isNew = [...(await written())].every(([name, version]) => known.get(name) !== version)
      listed = figures()
      lists += 1
      return isNew
    },
    { within: 300_000, every: 2_000 },
  )
  await profiled
  const delays = agents.state.received.map((at) => at - changed).sort((a, b) => a - b)
  const each = (figure: 'cpu' | 'etcd', from: Figures, to: Figures): number =>
    Number(((to[figure] - from[figure] - share[figure] * (to.at - from.at)) / count).toFixed(1))
  t.comment(
    JSON.stringify({
      load: load(),
      medianSeconds: seconds(delays[Math.floor(count / 2)] ?? 0),
      lastSeconds: seconds(delays.at(-1) ?? 0),
      allReportedAfter: seconds(reported.at - began.at),
      millisecondsForEachAgent: {
        apiServer: {
          idleMinute: Number(((60_000 * share.cpu) / count).toFixed(1)),
          event: each('cpu', began, received),
          report: each('cpu', received, reported),
        },
        etcd: { event: each('etcd', began, received), report: each('etcd', received, reported) },
      },
      // The first list too many is in the reports' time.
      lists,
      millisecondsOfTheLastList: listed.cpu - reported.cpu,
      refused: agents.state.refused,
    }),
  )
  t.equal(delays.length, count)
})

await t.test('a server that is away for 30 s has all agents back, and no report is written for it', async (t) => {
  const before = await written()
  await cluster.api.kill()
  agents.reset()
  await sleep(30_000)
  await cluster.api.start()
  const back = performance.now()
  await until(
    'each object is confirmed',
    () => agents.state.confirmed === watches && agents.state.watches === watches,
    patience,
  )
  const confirmed = performance.now() - back
  // A change would be reported within this time.
  await sleep(35_000)
  const changed = [...(await written())].filter(([name, version]) => before.get(name) !== version).length
  const { requests, unanswered, refused } = agents.state
  t.comment(
    JSON.stringify({
      load: load(),
      backAfter: seconds(confirmed),
      ...{ requests, unanswered, refused },
      // The server has started anew, and counts from there.
      refusedBy: await refusals(),
      reportsWritten: changed,
    }),
  )
  t.equal(changed, 0)
})

await t.test('memory of an agent with and without report: true', async (t) => {
  agents.end()
  const node = await createNode('memory')
  const kubeconfig = namespace.kubeconfig({ token: await namespace.token('agent', node, 'Node') })
  const found: Record<string, number> = {}
  for (const report of [undefined, true] as const) {
    const one = await Node.start(t, namespace, {
      ...(report && { report }),
      allowed: {},
      kubeconfig,
      environment: { NODE_NAME: 'memory' },
      directories: secrets.map((secret) => ({ path: secret, contents: [{ secret }] })),
    })
    await one.agent.ready()
    if (report) await until('it has reported', async () => (await written()).has('memory'), patience)
    await sleep(20_000)
    found[report ? 'with' : 'without'] = Number((memory(one.agent.pid, 'Anonymous') / 1024).toFixed(1))
    await one.agent.stop()
  }
  t.comment(JSON.stringify({ load: load(), anonymousMiB: found }))
  t.ok(found['with'])
})

await t.test(`fleet status of ${reportsToRead} reports`, async (t) => {
  const [model] = (
    (await admin.demand('GET', `${reports}?limit=1`)) as unknown as { items: (ApiObject & { status: object })[] }
  ).items
  const more = Array.from({ length: Math.max(0, reportsToRead - count) }, (_, index) => `more-${index}`)
  await inParallel(more, atATime, async (name) => {
    const { uid } = (await createNode(name)).metadata
    const metadata = { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] }
    const { apiVersion, kind } = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodePublication' }
    await admin.demand('POST', reports, { apiVersion, kind, metadata })
    const status = { ...model?.status, nodeUID: uid, agentID: `bench-${name}` }
    const apply = { 'content-type': 'application/apply-patch+yaml' }
    const path = `${reports}/${name}/status?fieldManager=holdfast-bench-${name}&force=true`
    await admin.demand('PATCH', path, { apiVersion, kind, metadata: { name }, status }, apply)
  })
  const began = performance.now()
  const child = execFile(process.execPath, [executable, 'fleet', 'status', '--kubeconfig', cluster.adminKubeconfig])
  let out = ''
  child.stdout?.on('data', (text: string) => (out += text))
  let peak = 0
  const look = setInterval(() => {
    const found = /^VmHWM:\s+(\d+) kB$/m.exec(status(child.pid))
    peak = Math.max(peak, Number(found?.[1] ?? 0))
  }, 20)
  const code = await new Promise((resolve) => child.on('close', resolve))
  clearInterval(look)
  const [first] = out.split('\n')
  t.comment(
    JSON.stringify({
      load: load(),
      seconds: seconds(performance.now() - began),
      peakMiB: Math.round(peak / 1024),
      first,
    }),
  )
  t.equal(code, 0)
})

/** The empty string where the process has ended. */
function status(pid: number | undefined): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}
