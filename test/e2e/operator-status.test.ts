/**
 * holdfast monitor --operator-status, on a real API server with the operator's CustomResourceDefinition, by the rights of rbac alone;
 * and all that holdfast does in library-go's place, compared with what library-go did.
 */
import t from 'tap'
import { silent } from '../../src/log.js'
import { Credentials } from '../../src/kubernetes/credentials/credentials.js'
import { connect } from '../../src/kubernetes/connection/connection.js'
import { OperatorStatus } from '../../src/static-pods/monitor/operator-status.js'
import { cases } from '../library-go/cases.js'
import { compare, type Difference } from '../library-go/compare.js'
import { differences } from '../library-go/differences.js'
import { recorded, replay } from '../library-go/replay.js'
import { lineOf } from '../library-go/row.js'
import { Scene } from '../library-go/scene.js'
import { run } from '../static-pods/command.js'
import { NodeDisk, podText } from '../static-pods/pods.js'
import { Cluster } from './cluster.js'
import { addOperator, operator, operatorPath } from './operator-resource.js'
import { grant } from './rights.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())
const { admin } = cluster.api

const { group } = operator
const flag = `--operator-status=${operator.resource}.${group}/${operator.name}`
const path = operatorPath
const merge = { 'content-type': 'application/merge-patch+json' }
await addOperator(cluster)

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

await t.test(
  'monitor reports by the printed rights that this node has come to its target, and leaves the other one alone',
  async (t) => {
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
        ...[
          'monitor',
          '--ready-for=0s',
          '--revision=7',
          '--ready-exec=true',
          '-o',
          'json',
          `--kubeconfig=${kubeconfig}`,
          ...about,
        ],
        ...[`--resource-dir=${node.resources}`, `--manifests-dir=${node.manifests}`],
      ])
    const own = { lastFailedCount: 2, currentRevision: 6, targetRevision: 7 }
    await setStatus(own)
    const denied = await monitor()
    t.equal(denied.code, 1)
    t.match(denied.stderr, /HTTP 403.*ClusterRole.*verb get on the resource kubeapiservers of operator\.openshift\.io/)
    t.same(await statuses(), [other, { nodeName: 'n1', ...own }])

    await grant(cluster, rights.stdout, namespace.name, account)
    const ready = await monitor()
    t.equal(ready.code, 0, ready.stderr)
    t.match(JSON.parse(ready.stdout), { outcome: 'ready', revision: 7 })
    const reached = [other, { nodeName: 'n1', lastFailedCount: 2, currentRevision: 7, targetRevision: 0 }]
    t.same(await statuses(), reached)

    await setStatus({ currentRevision: 7, targetRevision: 8 })
    t.equal((await monitor()).code, 0)
    t.match(await statuses(), [other, { currentRevision: 7, targetRevision: 8 }], 'another target is left alone')
  },
)

await t.test('monitor keeps a concurrent update, and retries after the conflict', async (t) => {
  const access = await new Credentials({ kubeconfig: cluster.adminKubeconfig, environment: {} }).load()
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

await t.test("library-go's commands differ on the same objects just as the table says", async (t) => {
  const theirs = recorded()
  t.same(Object.keys(theirs).sort(), Object.keys(cases).sort(), 'test/library-go/record.sh has recorded each case')
  const seen: Difference[] = []
  const replayOne = async (scene: Scene): Promise<void> => {
    const { said, ...ours } = await replay(scene)
    for (const difference of await compare(scene.name, theirs[scene.name], ours)) {
      seen.push(difference)
      if (!differences.some(({ shown }) => shown?.(difference)))
        t.fail('a difference without a reason', { difference, said })
    }
  }
  const usual = process.umask(0o022)
  t.teardown(() => process.umask(usual))
  const scenes = await Scene.createAll(cluster)
  const ofUmask = (umask?: number) => scenes.filter(({ given }) => given.umask === umask)
  await Promise.all(ofUmask().map(replayOne))
  // The umask is the whole process's.
  for (const umask of new Set(scenes.flatMap(({ given }) => given.umask ?? []))) {
    process.umask(umask)
    await Promise.all(ofUmask(umask).map(replayOne))
  }
  const lines = new Set(seen.map((difference) => `${difference.case}: ${lineOf(difference)}`))
  for (const { libraryGo, shown } of differences) {
    if (!shown) continue
    t.ok(seen.some(shown), `shown: ${libraryGo}`)
    for (const line of shown.lines ?? []) t.ok(lines.has(line), `shown: ${line}`)
  }
})
