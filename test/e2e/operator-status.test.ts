/** holdfast monitor --operator-status, on a real API server with the operator's CustomResourceDefinition, by the rights of rbac alone. */
import t from 'tap'
import { silent } from '../../src/log.js'
import { loadClusterAccess } from '../../src/objects/kubernetes/cluster-access.js'
import { connect } from '../../src/objects/kubernetes/connection.js'
import { OperatorStatus } from '../../src/static-pods/operator-status.js'
import { run } from '../static-pods/command.js'
import { NodeDisk, podText } from '../static-pods/pods.js'
import { Cluster } from './cluster.js'

t.setTimeout(400_000)

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())
const { admin } = cluster.api

const group = 'operator.openshift.io'
const operator = { resource: 'kubeapiservers', group, name: 'cluster' }
const flag = `--operator-status=${operator.resource}.${group}/${operator.name}`
const path = `/apis/${group}/v1/${operator.resource}`
const merge = { 'content-type': 'application/merge-patch+json' }

/** As OpenShift's, as far as a monitor sees it: a status of its own, and node statuses as one list. */
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${operator.resource}.${group}` },
  spec: {
    group,
    scope: 'Cluster',
    names: {
      plural: operator.resource,
      singular: 'kubeapiserver',
      kind: 'KubeAPIServer',
      listKind: 'KubeAPIServerList',
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}
await cluster.kubectl(['apply', '-f', '-'], JSON.stringify(definition))
await cluster.kubectl(['wait', '--for=condition=Established', `crd/${definition.metadata.name}`, '--timeout=60s'])
await admin.demand('POST', path, { apiVersion: `${group}/v1`, kind: 'KubeAPIServer', metadata: { name: 'cluster' } })

const other = { nodeName: 'n2', currentRevision: 5, targetRevision: 7 }
const setStatus = (own: object) =>
  admin.demand(
    'PATCH',
    `${path}/cluster/status`,
    { status: { nodeStatuses: [other, { nodeName: 'n1', ...own }] } },
    merge,
  )
async function statuses(): Promise<unknown> {
  const { body } = await admin.call('GET', `${path}/cluster`)
  return (body as { status: { nodeStatuses: unknown } }).status.nodeStatuses
}

await t.test('by the printed rights: this node has come to its target, and the other one is as it was', async (t) => {
  const namespace = await cluster.namespace()
  const account = 'monitor'
  await admin.demand('POST', `/api/v1/namespaces/${namespace.name}/serviceaccounts`, { metadata: { name: account } })
  const about = ['--target-name=web', `--namespace=${namespace.name}`, '--node-name=n1', flag]
  const rights = await run(['rbac', 'monitor', ...about, `--service-account=${account}`])
  t.equal(rights.code, 0, rights.stderr)

  const node = new NodeDisk(t)
  node.makeRevision(7)
  node.makeManifest(podText({ namespace: namespace.name, labels: { revision: '7' } }))
  const kubeconfig = namespace.kubeconfig({ token: await namespace.token(account) })
  const monitor = () =>
    run([
      ...['monitor', '--revision=7', '--ready-exec=true', '-o', 'json', `--kubeconfig=${kubeconfig}`, ...about],
      ...[`--resource-dir=${node.resources}`, `--manifests-dir=${node.manifests}`],
    ])
  const own = { lastFailedCount: 2, currentRevision: 6, targetRevision: 7 }
  await setStatus(own)
  const denied = await monitor()
  t.equal(denied.code, 1)
  t.match(denied.stderr, /HTTP 403.*ClusterRole.*verb get on the resource kubeapiservers of operator\.openshift\.io/)
  t.same(await statuses(), [other, { nodeName: 'n1', ...own }])

  await cluster.kubectl(['apply', '-f', '-'], rights.stdout)
  const ready = await monitor()
  t.equal(ready.code, 0, ready.stderr)
  t.match(JSON.parse(ready.stdout), { outcome: 'ready', revision: 7 })
  const reached = [other, { nodeName: 'n1', lastFailedCount: 2, currentRevision: 7, targetRevision: 0 }]
  t.same(await statuses(), reached)

  await setStatus({ currentRevision: 7, targetRevision: 8 })
  t.equal((await monitor()).code, 0)
  t.match(await statuses(), [other, { currentRevision: 7, targetRevision: 8 }], 'another target is left alone')
})

await t.test('an update that comes between is a conflict, and kept; the update is tried again', async (t) => {
  const access = await loadClusterAccess({ kubeconfig: cluster.adminKubeconfig, environment: {} })
  const api = connect(access, { version: 'test' })
  t.teardown(() => api.close())
  await setStatus({ currentRevision: 6, targetRevision: 7 })
  const answers: number[] = []
  // The operator writes after each of the first two looks.
  let writes = 0
  const between: ConstructorParameters<typeof OperatorStatus>[0] = {
    async get(...args) {
      const answer = await api.get(...args)
      if (args[0] === `${path}/cluster` && writes < 2) {
        const nodeStatuses = [
          { ...other, lastFailedCount: ++writes },
          { nodeName: 'n1', currentRevision: 6, targetRevision: 7 },
        ]
        await admin.demand('PATCH', `${path}/cluster/status`, { status: { nodeStatuses } }, merge)
      }
      return answer
    },
    async send(...args) {
      const answer = await api.send(...args)
      answers.push(answer.status)
      return answer
    },
  }
  await new OperatorStatus(between, operator, 'n1', silent).setCurrent(7, new AbortController().signal)
  t.same(answers, [409, 409, 200])
  t.same(await statuses(), [
    { ...other, lastFailedCount: 2 },
    { nodeName: 'n1', currentRevision: 7, targetRevision: 0 },
  ])
})
