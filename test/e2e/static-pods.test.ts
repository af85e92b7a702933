/** holdfast install, against a real API server, as an operator runs it: by flags alone, with just the rights that it asks for. */
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent } from '../../src/log.js'
import { loadClusterAccess } from '../../src/objects/kubernetes/cluster-access.js'
import { connect } from '../../src/objects/kubernetes/connection.js'
import { ApiReader } from '../../src/objects/kubernetes/api-reader.js'
import { reportInstall } from '../../src/static-pods/events.js'
import { mirrorPodProbe } from '../../src/static-pods/probe-mirror-pod.js'
import { waitForInstallers, waitTiming } from '../../src/static-pods/wait-for-installers.js'
import { brokenPods, soundPods } from '../static-pods/broken-pods.js'
import { randomFrom, replay, seed } from '../seed.js'
import { begin, ended, run, type Ended } from '../static-pods/command.js'
import { podText } from '../static-pods/pods.js'
import { Cluster } from './cluster.js'
import { Gate } from './gate.js'
import { workingDirectory } from './guard.js'
import type { Namespace } from './namespace.js'
import { until } from './until.js'

t.setTimeout(400_000)

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const canary = 'CANARY-77aa'
const nodeName = 'node-1.example'
await cluster.api.admin.demand('POST', '/api/v1/nodes', { metadata: { name: nodeName } })

async function setKubeletVersion(version: string): Promise<void> {
  await cluster.api.admin.demand(
    'PATCH',
    `/api/v1/nodes/${nodeName}/status`,
    { status: { nodeInfo: { kubeletVersion: version } } },
    { 'content-type': 'application/merge-patch+json' },
  )
}
await setKubeletVersion('v1.35.4')

/** A namespace with one revision, the flags that install it, and where they put it. */
class Site {
  readonly root = mkdtempSync(join(workingDirectory, 'site-'))
  readonly resources = join(this.root, 'static-pod-resources')
  readonly manifests = join(this.root, 'manifests')
  readonly certificates = join(this.resources, 'web-certs')

  constructor(readonly namespace: Namespace) {}

  static async create(revision = 6): Promise<Site> {
    const site = new Site(await cluster.namespace())
    await site.putRevision(revision)
    const { namespace } = site
    await namespace.putSecret('serving', { 'tls.crt': 'crt', 'tls.key': canary })
    await namespace.putConfigMap('trust', { 'ca.crt': 'ca' })
    return site
  }

  async putRevision(revision: number): Promise<void> {
    const { namespace } = this
    await namespace.putConfigMap(`web-pod-${revision}`, {
      'pod.yaml': podText({ annotations: { at: 'NODE_NAME' } }),
      'watch-pod.yaml': podText({ name: 'watch' }),
      version: 'not a manifest',
    })
    await namespace.putConfigMap(
      `config-${revision}`,
      { 'config.yaml': 'REVISION NODE_NAME NODE_ENVVAR_NAME', 'run.sh': 'x' },
      { binary: Buffer.of(255, 0, 254).toString('base64') },
    )
    await namespace.putSecret(`client-${revision}`, { 'tls.crt': 'crt', 'tls.key': canary, 'run.sh': 'x' })
  }

  flags(revision = 6): string[] {
    return [
      ...['install', '-v=4', `--revision=${revision}`, `--namespace=${this.namespace.name}`, '--pod=web-pod'],
      ...[`--resource-dir=${this.resources}`, `--pod-manifest-dir=${this.manifests}`],
      ...['--configmaps=web-pod', '--configmaps=config', '--optional-configmaps=absent,absent-too'],
      ...['--secrets=client', '--optional-secrets=absent', `--cert-dir=${this.certificates}`],
      ...['--cert-secrets=serving', '--optional-cert-secrets=absent', '--cert-configmaps=trust'],
      ...['--optional-cert-configmaps=absent', `--pod-manifests-lock-file=${join(this.root, 'lock')}`],
      '--timeout-duration=1m30s',
    ]
  }

  /** With the administrator's kubeconfig, unless another is given. */
  install(revision = 6, more: readonly string[] = [], environment: Record<string, string> = {}): Promise<Ended> {
    return run([...this.flags(revision), `--kubeconfig=${cluster.adminKubeconfig}`, ...more], {
      NODE_NAME: nodeName,
      ...environment,
    })
  }

  async events(): Promise<{ type: string; reason: string; note: string; regarding: { kind: string; name: string } }[]> {
    const { body } = await cluster.api.admin.call(
      'GET',
      `/apis/events.k8s.io/v1/namespaces/${this.namespace.name}/events`,
    )
    return (body as { items: [] }).items
  }

  live(): { metadata: { uid?: string; labels: { revision: string } } } {
    return JSON.parse(readFileSync(join(this.manifests, 'web-pod.yaml'), 'utf8')) as ReturnType<Site['live']>
  }

  /** An installer pod of this node, with a container that has ended or not. */
  async putPod(name: string, ended: boolean, owner?: object): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace.name}/pods`
    await cluster.api.admin.demand('POST', path, {
      metadata: { name, labels: { app: 'installer' }, ...(owner && { ownerReferences: [owner] }) },
      spec: { nodeName, containers: [{ name: 'installer', image: 'x' }] },
    })
    await this.setEnded(name, ended)
  }

  async setEnded(name: string, ended: boolean): Promise<void> {
    const state = ended ? { terminated: { exitCode: 0 } } : { running: {} }
    const status = {
      containerStatuses: [{ name: 'installer', image: 'x', imageID: '', ready: false, restartCount: 0, state }],
    }
    await cluster.api.admin.demand(
      'PATCH',
      `/api/v1/namespaces/${this.namespace.name}/pods/${name}/status`,
      { status },
      { 'content-type': 'application/merge-patch+json' },
    )
  }
}

const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8)

/** No value of an object is in what a command says. */
function tellsNothing(t: Test, ...results: Ended[]): void {
  for (const { stdout, stderr } of results) t.notMatch(stdout + stderr, canary)
}

await t.test('by flags alone: layout, modes, words, manifests, event; again, nothing changes', async (t) => {
  const site = await Site.create()
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
})

await t.test('what is missing or wrong ends it before anything is written, with an event', async (t) => {
  const site = await Site.create()
  const missing = await site.install(6, ['--secrets=none'])
  t.equal(missing.code, 1)
  t.match(missing.stderr, /none-6 does not exist, and it is required/)
  await site.namespace.putConfigMap('web-pod-7', { 'other.yaml': 'x' })
  const bare = [
    ...site.flags(7).filter((flag) => !/secrets|configmaps/.test(flag)),
    '--configmaps=web-pod',
    `--kubeconfig=${cluster.adminKubeconfig}`,
  ]
  const none = await run(bare, { NODE_NAME: nodeName })
  t.equal(none.code, 2)
  t.match(none.stderr, /has no key pod\.yaml/)
  await site.namespace.putConfigMap('web-pod-7', { 'pod.yaml': podText({}, { serviceAccountName: 'x' }) })
  const refused = await run(bare, { NODE_NAME: nodeName })
  t.match(refused.stderr, /web-pod-7, key pod\.yaml: spec\.serviceAccountName/)
  t.same(readdirSync(site.root), [], 'nothing was written')
  const events = await site.events()
  t.equal(events.length, 3)
  t.ok(events.every(({ type, reason }) => type === 'Warning' && reason === 'StaticPodInstallerFailed'))
  tellsNothing(t, missing, none, refused)
})

await t.test('a kubelet before 1.23 gets a uid; the same revision again keeps it', async (t) => {
  await setKubeletVersion('v1.22.9')
  t.teardown(() => setKubeletVersion('v1.35.4'))
  const site = await Site.create()
  t.equal((await site.install()).code, 0)
  const { uid } = site.live().metadata
  t.match(uid, /^[0-9a-f-]{36}$/)
  t.equal((await site.install()).code, 0)
  t.equal(site.live().metadata.uid, uid)
})

await t.test(
  'optional objects that vanish stay in cert-dir; a node that is not known is no reason to stop',
  async (t) => {
    const site = await Site.create()
    await site.namespace.putSecret('absent', { key: 'still in use' })
    t.equal((await site.install()).code, 0)
    await site.namespace.deleteSecret('absent')
    const unknown = await run([...site.flags(), `--kubeconfig=${cluster.adminKubeconfig}`, '--node-name=nobody'])
    t.equal(unknown.code, 1, 'the node is in what is installed, and a live revision is not changed')
    t.match(unknown.stderr, /kubelet version is not known; a current one is assumed/)
    t.equal((await site.install()).code, 0)
    t.equal(readFileSync(join(site.certificates, 'secrets/absent/key'), 'utf8'), 'still in use')
  },
)

await t.test("events regard what made the installer's pod", async (t) => {
  const { name: namespace } = await cluster.namespace()
  const access = await loadClusterAccess({ kubeconfig: cluster.adminKubeconfig, environment: {} })
  const api = connect(access, { version: 'test' })
  t.teardown(() => api.close())
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'operator', uid: 'u', controller: true }
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'v' }
  const ownPod = { metadata: { name: 'installer-6-n', uid: 'w', ownerReferences: [other, owner] } }
  const event = { type: 'Warning', reason: 'StaticPodInstallerFailed', note: 'x'.repeat(5000) } as const
  await reportInstall(api, { namespace, pod: 'web-pod', instance: 'installer-6-n', ownPod }, event, silent)
  const { body } = await cluster.api.admin.call('GET', `/apis/events.k8s.io/v1/namespaces/${namespace}/events`)
  const [completed] = (body as { items: { note: string; reportingController: string; regarding: object }[] }).items
  t.match(completed, {
    reportingController: 'static-pod-installer',
    regarding: { kind: 'Deployment', name: 'operator', uid: 'u' },
  })
  t.ok(Buffer.byteLength(completed?.note ?? '') <= 1024, 'cut to what the API takes')
})

await t.test('with just the rights that "rbac install" prints', async (t) => {
  const site = await Site.create()
  const { name } = site.namespace
  await cluster.api.admin.demand('POST', `/api/v1/namespaces/${name}/serviceaccounts`, {
    metadata: { name: 'installer' },
  })
  const token = await site.namespace.token('installer')
  const kubeconfig = site.namespace.kubeconfig({ token })
  const flags = [...site.flags(), `--node-name=${nodeName}`]
  const denied = await run([...flags, `--kubeconfig=${kubeconfig}`])
  t.equal(denied.code, 1)
  t.match(denied.stderr, /HTTP 403.*rbac install/)
  const roles = await run(['rbac', ...flags, '--service-account=installer'])
  t.equal(roles.code, 0, roles.stderr)
  await cluster.kubectl(['apply', '-f', '-'], roles.stdout)
  await site.putPod(`installer-6-${nodeName}`, false)
  const child = begin([...flags, `--kubeconfig=${kubeconfig}`], { POD_NAME: `installer-6-${nodeName}` })
  const { code, stderr } = await ended(child)
  t.equal(code, 0, stderr)
  t.notMatch(stderr, /refused|HTTP 4|cannot be/, 'nothing was refused')
  const [event] = await site.events()
  t.match(event, {
    reason: 'StaticPodInstallerCompleted',
    regarding: { kind: 'Pod', name: `installer-6-${nodeName}` },
  })
  const rules = JSON.parse((await run(['rbac', ...flags, '-o', 'json'])).stdout) as {
    items: { rules: object[] }[]
  }
  t.same(
    rules.items.map((role) => role.rules),
    [
      [
        {
          apiGroups: [''],
          resources: ['secrets'],
          resourceNames: ['absent', 'absent-6', 'client-6', 'serving'],
          verbs: ['get'],
        },
        {
          apiGroups: [''],
          resources: ['configmaps'],
          resourceNames: ['absent', 'absent-6', 'absent-too-6', 'config-6', 'trust', 'web-pod-6'],
          verbs: ['get'],
        },
        { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
        { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
      ],
      [{ apiGroups: [''], resources: ['nodes'], resourceNames: [nodeName], verbs: ['get'] }],
    ],
  )
})

await t.test('an installer gives way to a newer one, and writes nothing', async (t) => {
  const site = await Site.create()
  await site.putPod(`installer-6-${nodeName}`, false)
  await site.putPod(`installer-7-retry-1-${nodeName}`, false)
  const { code, stderr } = await site.install(6, [], { POD_NAME: `installer-6-${nodeName}` })
  t.equal(code, 1)
  t.match(stderr, /installer-7-retry-1-node-1\.example installs revision 7: revision 6 gives way/)
  t.same(readdirSync(site.root), [])
  t.same(await site.events(), [], 'that is no failure to alert of')
  const alone = await site.install(6, [], { POD_NAME: 'x' })
  t.equal(alone.code, 1)
})

await t.test('an installer waits for older ones to end, up to its limit', async (t) => {
  const site = await Site.create()
  const access = await loadClusterAccess({ kubeconfig: cluster.adminKubeconfig, environment: {} })
  const api = connect(access, { version: 'test' })
  t.teardown(() => api.close())
  const installers = new ApiReader(api, { log: silent })
  const own = `installer-6-${nodeName}`
  const request = { namespace: site.namespace.name, revision: 6, nodeName, podName: own }
  const { signal } = new AbortController()
  const timing = { poll: 20, limit: 100, pause: 20 }
  await t.rejects(waitForInstallers(installers, { ...request, timing }, silent, signal), /no installer pod/)
  await site.putPod(own, false)
  await site.putPod(`installer-5-${nodeName}`, false)
  await t.rejects(
    waitForInstallers(installers, { ...request, timing }, silent, signal),
    /have not ended in time: installer-5-/,
  )
  let done = false
  const waiting = waitForInstallers(installers, { ...request, timing: { ...timing, limit: 60_000 } }, silent, signal)
  void waiting.then(() => (done = true))
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.equal(done, false)
  await site.setEnded(`installer-5-${nodeName}`, true)
  t.match(await waiting, { metadata: { name: own } })
  t.same(waitTiming, { poll: 10_000, limit: 60_000, pause: 30_000 })
  const soon = AbortSignal.timeout(200)
  const pausing = { ...request, timing: { ...timing, pause: 300_000 } }
  await t.rejects(
    waitForInstallers(installers, pausing, silent, soon),
    { name: 'TimeoutError' },
    'it ends while it pauses',
  )
  const late = waitForInstallers(installers, { ...request, timing: { ...timing, pause: 400 } }, silent, signal)
  const refused = t.rejects(late, /gives way/, 'one that appears while it pauses counts, too')
  await new Promise((resolve) => setTimeout(resolve, 150))
  await site.putPod(`installer-7-${nodeName}`, false)
  await refused
})

await t.test('a server that is away is waited for; SIGTERM and the deadline end the wait', async (t) => {
  const site = await Site.create()
  const gate = await Gate.before(t, cluster.api.port)
  const { name } = site.namespace
  await cluster.api.admin.demand('POST', `/api/v1/namespaces/${name}/serviceaccounts`, {
    metadata: { name: 'installer' },
  })
  const token = await site.namespace.token('installer')
  const kubeconfig = site.namespace.kubeconfig({ token }, { server: gate.url })
  const flags = [...site.flags(), `--node-name=${nodeName}`]
  await cluster.kubectl(['apply', '-f', '-'], (await run(['rbac', ...flags, '--service-account=installer'])).stdout)

  gate.shut()
  const late = await run([...flags, `--kubeconfig=${kubeconfig}`, '--timeout-duration=3s'])
  t.equal(late.code, 1)
  t.match(late.stderr, /not done within 3 s/)
  const stopped = begin([...flags, `--kubeconfig=${kubeconfig}`])
  stopped.stderr?.once('data', () => stopped.kill('SIGTERM'))
  t.equal((await ended(stopped)).code, 143)
  t.same(readdirSync(site.root), [])

  const waiting = begin([...flags, `--kubeconfig=${kubeconfig}`])
  let tries = 0
  waiting.stderr?.on('data', (chunk: Buffer) => (tries += String(chunk).split('the read is retried').length - 1))
  const end = ended(waiting)
  await until('it has tried more than four times', () => tries > 4)
  gate.open()
  t.equal((await end).code, 0)
  t.equal(site.live().metadata.labels.revision, '6')
})

await t.test('another process holds the manifest lock: exit 75 at the deadline, the manifest as it was', async (t) => {
  const site = await Site.create()
  const { Disk } = await import('../../src/durable/index.js')
  mkdirSync(site.manifests)
  const held = await new Disk().lock(join(site.root, 'lock'), 0, undefined)
  // Callers in one process wait for one another: the installer has a process of its own.
  const flags = [...site.flags(), `--kubeconfig=${cluster.adminKubeconfig}`, '--timeout-duration=4s']
  const { code, stderr } = await ended(begin(flags, { NODE_NAME: nodeName }))
  t.equal(code, 75, stderr)
  t.match(stderr, /another process holds the lock/)
  t.same(readdirSync(site.manifests), [])
  await held.release()
  t.equal((await site.install()).code, 0)
})

await t.test('ended at random instants by SIGKILL: the manifest is whole, and so is what it names', async (t) => {
  const site = await Site.create(1)
  const random = randomFrom(seed)
  t.comment(replay)
  const began = performance.now()
  t.equal((await site.install(1)).code, 0)
  const usual = performance.now() - began
  let killed = 0
  let before = '1'
  for (let revision = 2; revision <= 9; revision++) {
    await site.putRevision(revision)
    const child = begin([...site.flags(revision), `--kubeconfig=${cluster.adminKubeconfig}`], {
      NODE_NAME: nodeName,
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), usual * (0.4 + random() * 0.7))
    const { signal } = await ended(child)
    clearTimeout(timer)
    if (signal) killed++
    const live = site.live().metadata.labels.revision
    const named = join(site.resources, `web-pod-${live}`)
    t.ok([before, String(revision)].includes(live), `revision ${live} is live, after ${before}`)
    before = live
    t.equal(readFileSync(join(named, 'secrets/client/tls.key'), 'utf8'), canary)
    t.equal(readFileSync(join(named, 'configmaps/config/config.yaml'), 'utf8'), `${live} node-1.example node_1_example`)
    t.same(
      readdirSync(site.manifests).filter((name) => !name.startsWith('.')),
      ['watch-pod.yaml', 'web-pod.yaml'],
    )
  }
  t.comment(`${killed} of 8 were killed`)
  t.equal((await site.install(9)).code, 0)
  t.same(
    readdirSync(site.resources).filter((name) => /^\.holdfast-[0-9a-f]{16}-/.test(name)),
    [],
    'nothing is left',
  )
})

await t.test('the monitor asks for the mirror pod', async (t) => {
  const site = await Site.create(6)
  const { name: namespace } = site.namespace
  for (const revision of [6, 7]) {
    if (revision === 7) await site.putRevision(7)
    t.equal((await site.install(revision)).code, 0)
  }
  const live = join(site.manifests, 'web-pod.yaml')
  const installed = readFileSync(live)
  const flags = (kubeconfig: string): string[] => [
    ...['monitor', '--revision=7', '--target-name=web', `--node-name=${nodeName}`, '-o', 'json'],
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
  const access = await loadClusterAccess({ kubeconfig: cluster.adminKubeconfig, environment: {} })
  const api = connect(access, { version: 'test' })
  t.teardown(() => api.close())
  const probe = mirrorPodProbe(api, nodeName, 7, 'kube-system')
  const manifest = { name: 'web', namespace: undefined } as Parameters<typeof probe.ask>[0]
  const { signal } = new AbortController()
  await ready('True')
  t.same(await probe.ask(manifest, signal), { state: 'not-ready', message: 'it is of revision 6 still' })
  await patch('', { metadata: { labels: { revision: '7' } } })
  await ready('False', 'ContainersNotReady')
  t.same(await probe.ask(manifest, signal), { state: 'not-ready', message: 'not Ready (ContainersNotReady)' })
  await ready('True')
  t.same(await probe.ask(manifest, signal), { state: 'ready' })

  // What may not be asked says nothing, and then there must be another probe.
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

await t.test('a pod that is refused is one that the API server refuses, and the reverse', async (t) => {
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
    t.ok([400, 422].includes(status) || (status === 404 && what.includes('namespace')), `${what}: ${status}`)
  }
  for (const { what, pod } of soundPods) t.equal(await create(pod), 201, what)
})

// The last one, since it takes the whole cluster back.
await t.test('etcd restored from a backup: an older version replaces a newer one, and that is reported', async (t) => {
  const site = await Site.create()
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
  t.match(after.stderr, /"reason":"HistoryRewound"/)
  const again = await site.install()
  t.notMatch(again.stderr, /HistoryRewound/, 'once')
  tellsNothing(t, before, after, again)
})
