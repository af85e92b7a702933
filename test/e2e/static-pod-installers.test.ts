/** An installer beside others, against a real API server: its rights, its waits, and what its events regard. */
import { readdirSync } from 'node:fs'
import t from 'tap'
import { silent } from '../../src/log.js'
import { Credentials } from '../../src/kubernetes/credentials/credentials.js'
import { connect } from '../../src/kubernetes/connection/connection.js'
import { ApiReader } from '../../src/kubernetes/reads/api-reader.js'
import { reportInstall } from '../../src/static-pods/install/install-from-api.js'
import { waitForInstallers, waitTiming } from '../../src/static-pods/install/wait-for-installers.js'
import { begin, ended, run } from '../static-pods/command.js'
import { Gate } from './gate.js'
import { grant } from './rights.js'
import { clusterWithNode, nodeName, Site } from './static-pod-site.js'
import { until } from '../until.js'

const cluster = await clusterWithNode(t)

await t.test("events regard the owner of the installer's pod", async (t) => {
  const { name: namespace } = await cluster.namespace()
  const access = await new Credentials({ kubeconfig: cluster.adminKubeconfig, environment: {} }).load()
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

await t.test('install works with just the rights that "rbac install" prints', async (t) => {
  const site = await Site.create(cluster)
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
  await grant(cluster, roles.stdout, name, 'installer')
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

await t.test('an installer waits for older ones to end, up to its limit', async (t) => {
  const site = await Site.create(cluster)
  const access = await new Credentials({ kubeconfig: cluster.adminKubeconfig, environment: {} }).load()
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
    /did not end in time: installer-5-/,
  )
  let done = false
  let looks = 0
  const counted = Object.assign(Object.create(installers) as ApiReader, {
    list: (...args: Parameters<ApiReader['list']>) => {
      looks += 1
      return installers.list(...args)
    },
  })
  const waiting = waitForInstallers(counted, { ...request, timing: { ...timing, limit: 60_000 } }, silent, signal)
  void waiting.then(() => (done = true))
  await until('it has looked again, twice', () => looks > 2)
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
  // It has looked once: the newer one comes before it looks again, however long that takes.
  looks = 0
  const between = Object.assign(Object.create(installers) as ApiReader, {
    list: async (...args: Parameters<ApiReader['list']>) => {
      const found = await installers.list(...args)
      if (++looks === 1) await site.putPod(`installer-7-${nodeName}`, false)
      return found
    },
  })
  const late = waitForInstallers(between, { ...request, timing }, silent, signal)
  await t.rejects(late, /gives way/, 'one that appears while it pauses counts, too')
})

await t.test('an installer waits for a server that is away, until SIGTERM or the deadline', async (t) => {
  const site = await Site.create(cluster)
  const gate = await Gate.before(t, cluster.api.port)
  const { name } = site.namespace
  await cluster.api.admin.demand('POST', `/api/v1/namespaces/${name}/serviceaccounts`, {
    metadata: { name: 'installer' },
  })
  const token = await site.namespace.token('installer')
  const kubeconfig = site.namespace.kubeconfig({ token }, { server: gate.url })
  const flags = [...site.flags(), `--node-name=${nodeName}`]
  const roles = await run(['rbac', ...flags, '--service-account=installer'])
  await grant(cluster, roles.stdout, name, 'installer')

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
