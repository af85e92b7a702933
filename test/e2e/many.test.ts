/** Many objects at once: more than one connection's streams, and more than the API server's priority and fairness has room for. */
import t, { type Test } from 'tap'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import type { Namespace } from './namespace.js'
import { Node, type NodeOptions } from './node.js'
import { connections } from './process-figures.js'
import { until } from '../until.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const directories = 10
const perDirectory = 20

await t.test('the agent publishes 200 objects, created at once and updated at once', async (t) => {
  const namespace = await cluster.namespace()
  const names = (directory: number): string[] =>
    Array.from({ length: perDirectory }, (_, index) => `secret-${directory}-${index}`)
  const all = Array.from({ length: directories }, (_, directory) => names(directory))
  const node = await Node.start(t, namespace, {
    allowed: { secrets: all.flat() },
    rate: { qps: 200, burst: 200 },
    directories: all.map((secrets, directory) => ({
      path: `directory-${directory}`,
      contents: secrets.map((secret) => ({ secret, into: secret })),
    })),
  })
  const putAll = (version: string): Promise<unknown> =>
    Promise.all(all.flat().map((name) => namespace.putSecret(name, { name, version })))
  const expected = (version: string): object[] =>
    all.map((secrets) =>
      Object.fromEntries(
        secrets.flatMap((name) => [
          [`${name}/name`, name],
          [`${name}/version`, version],
        ]),
      ),
    )
  const onDisk = (): (object | undefined)[] => all.map((_, directory) => readTree(node.path(`directory-${directory}`)))

  for (const version of ['1', '2', '3']) {
    await putAll(version)
    const started = performance.now()
    const files = Object.values(expected(version)).reduce((sum, tree) => sum + Object.keys(tree).length, 0)
    await until(`${files} files are on the disk`, () => {
      const found = onDisk().flatMap((tree) => Object.entries(tree ?? {}))
      const current = found.filter(([file, text]) => !file.endsWith('/version') || text === version)
      return current.length === files
    })
    t.comment(`version ${version}: ${Math.round(performance.now() - started)} ms after the last was written`)
    t.strictSame(onDisk(), expected(version))
  }
  await node.agent.ready()
  const open = connections(node.agent.pid, cluster.api.port)
  t.ok(open >= 2 && open <= 4, `${open} connections for 200 watches, 100 streams each`)
})

const hundredSecrets = Array.from({ length: 100 }, (_, index) => `secret-${index}`)

/** One queue of this length for the namespace's accounts, and the least share of the server. */
async function limit(namespace: Namespace, queueLengthLimit: number): Promise<void> {
  const flowcontrol = '/apis/flowcontrol.apiserver.k8s.io/v1'
  const { admin } = cluster.api
  const queuing = { queues: 1, handSize: 1, queueLengthLimit }
  await admin.demand('POST', `${flowcontrol}/prioritylevelconfigurations`, {
    metadata: { name: namespace.name },
    spec: {
      type: 'Limited',
      limited: {
        nominalConcurrencyShares: 1,
        lendablePercent: 0,
        borrowingLimitPercent: 0,
        limitResponse: { type: 'Queue', queuing },
      },
    },
  })
  await admin.demand('POST', `${flowcontrol}/flowschemas`, {
    metadata: { name: namespace.name },
    spec: {
      priorityLevelConfiguration: { name: namespace.name },
      matchingPrecedence: 100,
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'Group', group: { name: `system:serviceaccounts:${namespace.name}` } }],
          resourceRules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'], namespaces: ['*'], clusterScope: true }],
        },
      ],
    },
  })
  await until('the server has taken the limit', async () => {
    const schema = await admin.demand('GET', `${flowcontrol}/flowschemas/${namespace.name}`)
    const { status } = schema as unknown as { status: { conditions?: { type: string; status: string }[] } }
    return status.conditions?.some((each) => each.type === 'Dangling' && each.status === 'False')
  })
}

type Rate = NonNullable<NodeOptions['rate']>

interface Load {
  readonly refused: number
  readonly requests: number
  readonly throttled: number
}

/** Starts an agent, and answers the cost of opening all of its watches. */
async function load(t: Test, namespace: Namespace, kubeconfig: string, rate: Rate): Promise<Load> {
  const node = await Node.create(t, namespace, {
    allowed: {},
    directories: [{ path: 'all', contents: hundredSecrets.map((secret) => ({ secret, into: secret })) }],
    kubeconfig,
    rate,
  })
  const { agent } = node
  const started = performance.now()
  agent.start()
  await agent.ready()
  await until(
    'all watches are open',
    async () => (await agent.metric('holdfast_watches_open')) === hundredSecrets.length,
  )
  const result = {
    refused: await agent.metric('holdfast_api_requests_total', { code: '429' }),
    requests: await agent.metric('holdfast_api_requests_total', { verb: 'watch' }),
    throttled: await agent.metric('holdfast_api_throttled_seconds_total'),
  }
  t.comment(JSON.stringify({ rate, ...result, milliseconds: Math.round(performance.now() - started) }))
  await agent.stop()
  return result
}

await t.test(
  'an agent with 100 objects has room in a queue of ten, and its own rate holds it back besides',
  async (t) => {
    const namespace = await cluster.namespace()
    await Promise.all(hundredSecrets.map((name) => namespace.putSecret(name, { name })))
    await namespace.createAccount('agent', { secrets: hundredSecrets })
    await limit(namespace, 10)
    const kubeconfig = namespace.kubeconfig({ token: await namespace.token('agent') })
    const unlimited = await load(t, namespace, kubeconfig, { qps: 10_000, burst: 10_000 })
    t.match(unlimited, { refused: 0, requests: hundredSecrets.length, throttled: 0 }, 'one request opens a watch')
    const limited = await load(t, namespace, kubeconfig, { qps: 15, burst: 20 })
    t.match(limited, { refused: 0, requests: hundredSecrets.length })
    t.ok(limited.throttled > 0)
  },
)
