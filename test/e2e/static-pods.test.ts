/** holdfast install and monitor, against a real API server, as an operator runs them: what comes to the node, by flags alone. */
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Credentials } from '../../src/kubernetes/credentials/credentials.js'
import { connect } from '../../src/kubernetes/connection/connection.js'
import { parseManifest } from '../../src/static-pods/pod/manifest.js'
import { mirrorPodProbe } from '../../src/static-pods/ready/probe-mirror-pod.js'
import { brokenPods, soundPods } from '../static-pods/pod/broken-pods.js'
import { run } from '../static-pods/command.js'
import { podText } from '../static-pods/pods.js'
import { canary, clusterWithNode, nodeName, Site, tellsNothing } from './static-pod-site.js'

const cluster = await clusterWithNode(t)

const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8)

await t.test(
  'install writes layout, modes, words, manifests and an event by flags alone, and changes nothing in a second run',
  async (t) => {
    const site = await Site.create(cluster)
    const dry = await site.install(6, ['--dry-run'])
    t.equal(dry.code, 0, dry.stderr)
    t.match(dry.stdout, /would be created .*web-pod-6 +sha256:\S+\n[^]*\+ secrets\/client\/tls\.key/)
    t.same(readdirSync(site.root), [], 'a dry run writes nothing')
    t.same(await site.events(), [])

    const first = await site.install()
    t.equal(first.code, 0, first.stderr)
    const made = join(site.resources, 'web-pod-6')
    const expected: [string, string][] = [
      ['configmaps/config/binary', '600'],
      ['configmaps/config/config.yaml', '600'],
      ['configmaps/config/run.sh', '755'],
      ['configmaps/web-pod/pod.yaml', '600'],
      ['secrets/client/run.sh', '700'],
      ['secrets/client/tls.key', '600'],
      ['secrets/client', '755'],
      ['watch-pod.yaml', '600'],
      ['web-pod.yaml', '600'],
    ]
    t.same(
      expected.map(([path]) => [path, modeOf(join(made, path))]),
      expected,
    )
    t.same(readdirSync(join(made, 'secrets')), ['client'])
    t.equal(readFileSync(join(made, 'configmaps/config/config.yaml'), 'utf8'), '6 node-1.example node_1_example')
    t.same([...readFileSync(join(made, 'configmaps/config/binary'))], [255, 0, 254])
    t.equal(readFileSync(join(site.certificates, 'secrets/serving/tls.key'), 'utf8'), canary)
    t.equal(modeOf(join(site.certificates, 'configmaps/trust/ca.crt')), '600')
    t.same(
      readdirSync(site.manifests).filter((name) => !name.startsWith('.')),
      ['watch-pod.yaml', 'web-pod.yaml'],
    )
    t.match(site.live(), { metadata: { labels: { revision: '6' }, annotations: { at: nodeName } } })
    t.equal(site.live().metadata.uid, undefined)
    t.match(await site.events(), [
      {
        type: 'Normal',
        reason: 'StaticPodInstallerCompleted',
        note: 'Successfully installed revision 6',
        regarding: { kind: 'Namespace', name: site.namespace.name },
      },
    ])
    const inodes = () =>
      [made, site.certificates, join(site.certificates, 'secrets/serving'), join(site.manifests, 'web-pod.yaml')].map(
        (path) => statSync(path).ino,
      )
    const before = inodes()
    const again = await site.install(6, ['-o', 'json'])
    const outcomes = JSON.parse(again.stdout) as {
      directories: { outcome: string }[]
      manifests: { outcome: string }[]
    }
    t.same(
      [...outcomes.directories, ...outcomes.manifests].map(({ outcome }) => outcome),
      Array(5).fill('unchanged'),
    )
    t.match(
      outcomes.manifests,
      [{ path: join(site.manifests, 'watch-pod.yaml') }, { path: join(site.manifests, 'web-pod.yaml') }],
      'the pod itself comes last',
    )
    t.same(inodes(), before)

    await site.putRevision(7)
    await site.namespace.putSecret('serving', { 'tls.crt': 'new', 'tls.key': 'new' })
    const next = await site.install(7)
    t.equal(next.code, 0, next.stderr)
    t.equal(site.live().metadata.labels.revision, '7')
    t.same(inodes()[1], before[1], 'the directory of certificates itself is never exchanged')
    t.equal(readFileSync(join(site.certificates, 'secrets/serving/tls.key'), 'utf8'), 'new')
    tellsNothing(t, dry, first, again, next)
  },
)

await t.test('install keeps vanished optional objects in cert-dir, and goes on for an unknown node', async (t) => {
  const site = await Site.create(cluster)
  await site.namespace.putSecret('absent', { key: 'still in use' })
  t.equal((await site.install()).code, 0)
  await site.namespace.deleteSecret('absent')
  const unknown = await run([...site.flags(), `--kubeconfig=${cluster.adminKubeconfig}`, '--node-name=nobody'])
  t.equal(unknown.code, 1, 'the node is in what is installed, and a live revision is not changed')
  t.match(unknown.stderr, /does not report its kubelet version; holdfast assumes a current one/)
  t.equal((await site.install()).code, 0)
  t.equal(readFileSync(join(site.certificates, 'secrets/absent/key'), 'utf8'), 'still in use')
})

await t.test('monitor asks for the mirror pod', async (t) => {
  const site = await Site.create(cluster)
  const { name: namespace } = site.namespace
  for (const revision of [6, 7]) {
    if (revision === 7) await site.putRevision(7)
    t.equal((await site.install(revision)).code, 0)
  }
  const live = join(site.manifests, 'web-pod.yaml')
  const installed = readFileSync(live)
  const flags = (kubeconfig: string): string[] => [
    ...['monitor', '--ready-for=0s', '--revision=7', '--target-name=web', `--node-name=${nodeName}`, '-o', 'json'],
    ...[`--resource-dir=${site.resources}`, `--manifests-dir=${site.manifests}`, `--kubeconfig=${kubeconfig}`],
  ]
  const absent = await run([...flags(cluster.adminKubeconfig), '--fallback-timeout-duration=1ms'])
  t.equal(absent.code, 1, absent.stderr)
  t.match(JSON.parse(absent.stdout), {
    outcome: 'fell-back',
    to: 6,
    message: `mirror pod: kube-system/web-${nodeName} does not exist`,
  })
  t.equal(site.live().metadata.labels.revision, '6')

  // As kubelet makes it, but for the annotation, which only a node may set.
  const pods = '/api/v1/namespaces/kube-system/pods'
  const pod = { metadata: { name: `web-${nodeName}`, labels: { revision: '6' } } }
  const spec = { nodeName, containers: [{ name: 'web', image: 'web:1' }] }
  await cluster.api.admin.demand('POST', pods, { ...pod, spec })
  t.teardown(() => cluster.api.admin.demand('DELETE', `${pods}/web-${nodeName}?gracePeriodSeconds=0`))
  const patch = (path: string, change: object) =>
    cluster.api.admin.demand('PATCH', `${pods}/web-${nodeName}${path}`, change, {
      'content-type': 'application/merge-patch+json',
    })
  const ready = (status: string, reason?: string) =>
    patch('/status', { status: { conditions: [{ type: 'Ready', status, ...(reason && { reason }) }] } })
  const access = await new Credentials({ kubeconfig: cluster.adminKubeconfig, environment: {} }).load()
  const api = connect(access, { version: 'test' })
  t.teardown(() => api.close())
  const way = { api, namespace: () => Promise.resolve(undefined) }
  const probe = mirrorPodProbe([way], nodeName, 'kube-system')
  const manifest = await parseManifest(Buffer.from(podText({ labels: { revision: '7' } })), 'web-pod.yaml')
  const { signal } = new AbortController()
  await ready('True')
  t.same(await probe.ask(manifest, signal), { state: 'not-ready', message: 'it is still of revision 6' })
  await patch('', { metadata: { labels: { revision: '7' } } })
  await ready('False', 'ContainersNotReady')
  t.same(await probe.ask(manifest, signal), { state: 'not-ready', message: 'not Ready (ContainersNotReady)' })
  await ready('True')
  t.match(await probe.ask(manifest, signal), { state: 'ready' })

  // A forbidden question says nothing, and then there must be another probe.
  await cluster.api.admin.demand('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, {
    metadata: { name: 'monitor' },
  })
  const nobody = site.namespace.kubeconfig({ token: await site.namespace.token('monitor') })
  writeFileSync(live, installed)
  const refused = await run([...flags(nobody), '--fallback-timeout-duration=1ms'])
  t.equal(refused.code, 1, refused.stderr)
  t.match(JSON.parse(refused.stdout), { outcome: 'unknown', message: /^mirror pod: HTTP 403.*get.*pods/ })
  t.equal(site.live().metadata.labels.revision, '7', 'it stays')
  const other = await run([...flags(nobody), '--ready-exec=true', '--keep-own-manifest'])
  t.equal(other.code, 0, other.stderr)
  const good = await run(flags(cluster.adminKubeconfig))
  t.equal(good.code, 0, good.stderr)
  t.match(JSON.parse(good.stdout), { outcome: 'ready', revision: 7 })
})

await t.test('holdfast refuses just the pods that the API server refuses', async (t) => {
  // kubelet validates a manifest with the API server's own code.
  const path = '/api/v1/namespaces/default/pods?dryRun=All'
  const create = async (pod: object) => {
    const { metadata } = pod as { metadata: { namespace?: string } }
    // A namespace that does not fit the path would be refused for that alone.
    const at = metadata.namespace ? path.replace('default', metadata.namespace) : path
    return (await cluster.api.admin.call('POST', at, pod)).status
  }
  for (const { what, pod } of brokenPods) {
    const status = await create(pod)
    // Before the validation, the server looks for the namespace, and its admission for the classes that a pod names.
    const first = { namespace: 404, priorityClassName: 403, runtimeClassName: 500 }
    const lookedFor = Object.entries(first).some(([word, code]) => what.includes(word) && status === code)
    t.ok([400, 422].includes(status) || lookedFor, `${what}: ${status}`)
  }
  for (const { what, pod } of soundPods) t.equal(await create(pod), 201, what)
})

// The last one, since it takes the whole cluster back.
await t.test(
  'install replaces a newer version by an older one after a restore of etcd, and reports that',
  async (t) => {
    const site = await Site.create(cluster)
    const serving = () => readFileSync(join(site.certificates, 'secrets/serving/tls.crt'), 'utf8')
    const snapshot = await cluster.snapshotEtcd()
    await site.namespace.putSecret('serving', { 'tls.crt': 'after the backup', 'tls.key': canary })
    const before = await site.install()
    t.equal(before.code, 0, before.stderr)
    t.equal(serving(), 'after the backup')
    await cluster.restoreEtcd(snapshot)
    const after = await site.install()
    t.equal(after.code, 0, after.stderr)
    t.equal(serving(), 'crt')
    t.match(after.stderr, /HistoryRewound/)
    const again = await site.install()
    t.notMatch(again.stderr, /HistoryRewound/, 'once')
    tellsNothing(t, before, after, again)
  },
)
