/** The unit of deploy/systemd under a real systemd: the first boot, an object that never comes, a reload, a loop that hangs. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ApiClient } from '../e2e/api-client.js'
import { findProgram } from '../e2e/assets.js'
import { Authority } from '../e2e/authority.js'
import { writeKubeconfig } from '../e2e/kubeconfig.js'
import { freePort } from '../e2e/ports.js'
import { until } from '../until.js'
import { unfit } from './requirements.js'
import { SystemdNode } from './systemd.js'

const patience = { within: 120_000, every: 100 }
const files = { namespace: 'demo', files: { path: '/etc/holdfast/objects' } }
const certs = '/etc/kubernetes/node-certs'
const web = { path: `${certs}/web`, contents: [{ secret: 'web' }] }
/** A unit that waits for the agent, in kubelet's place. */
const waiting = '[Service]\nType=exec\nExecStart=/bin/sleep 1000000\n'

const reason = (await unfit()) ?? withoutSystemd()
if (reason === undefined) await suite()
else t.plan(0, reason)

function withoutSystemd(): string | undefined {
  try {
    execFileSync('/lib/systemd/systemd', ['--version'])
    execFileSync('journalctl', ['--version'])
    return undefined
  } catch {
    return 'left out: the node tests need systemd (Debian: systemd)'
  }
}

function put(node: SystemdNode, name: string, value: string): void {
  const objects = node.space.onDisk('/etc/holdfast/objects')
  mkdirSync(objects, { recursive: true })
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: { key: value } }
  writeFileSync(join(objects, `${name}.yaml`), JSON.stringify(secret))
}

async function booted(t: Test): Promise<SystemdNode> {
  const node = await SystemdNode.boot(t)
  put(node, 'web', '1')
  node.configure([web], files)
  return node
}

async function suite(): Promise<void> {
  await t.test('a unit starts once the directories are there; reload answers; the journal has levels', async (t) => {
    const node = await booted(t)
    const { space } = node
    await node.installAfterHoldfast('kubelet.service', waiting)
    await space.demand('systemctl', ['start', 'kubelet.service'])
    t.equal(await node.show('ActiveState'), 'active', 'kubelet has asked for it')
    t.equal(await node.show('StatusText'), '1 of 1 directories are whole')
    t.equal(readFileSync(space.onDisk(`${certs}/web/key`), 'utf8'), '1')

    node.configure([{ ...web, fileMode: '0640' }], files)
    await space.demand('systemctl', ['reload', 'holdfast.service'])
    const messages = (await node.journal()).map(({ MESSAGE }) => MESSAGE)
    t.ok(
      messages.some((text) => text.includes('is in force')),
      'a reload ends when the configuration is in force',
    )
    await until('the unit is active', async () => (await node.show('ActiveState')) === 'active', patience)
    node.configure([{ ...web, fileMode: 640 }], files)
    const refused = await space.run('systemctl', ['reload', 'holdfast.service'])
    t.not(refused.code, 0, 'a refused configuration fails the reload')
    t.equal(await node.show('ActiveState'), 'active')
    // holdfast reload itself refuses such a file, and does not bother the agent.
    await space.demand('systemctl', ['kill', '--signal=SIGHUP', '--kill-who=main', 'holdfast.service'])
    await until(
      'the status says so',
      async () => (await node.show('StatusText')).startsWith('its configuration file is invalid'),
      patience,
    )
    const priorities: Readonly<Record<string, string>> = { error: '3', warn: '4', info: '6', debug: '7' }
    const levels = new Set<string>()
    for (const { PRIORITY, MESSAGE } of await node.journal()) {
      if (!MESSAGE.startsWith('{')) continue
      const { level } = JSON.parse(MESSAGE) as { level: string }
      t.equal(PRIORITY, priorities[level], MESSAGE)
      levels.add(level)
    }
    t.ok(levels.has('info') && levels.has('error'), [...levels].join())
    await space.demand('systemctl', ['stop', 'holdfast.service'])
    t.equal(await node.show('Result'), 'success')
    t.equal(await node.show('ExecMainStatus'), '0')
  })

  await t.test(
    'what waits starts after 30 s where a required object never comes, and the status names it',
    async (t) => {
      const node = await booted(t)
      const { space } = node
      node.configure([web, { path: `${certs}/never`, contents: [{ secret: 'never' }] }], files)
      await node.installAfterHoldfast('kubelet.service', waiting)
      const begun = performance.now()
      const starting = space.demand('systemctl', ['start', 'kubelet.service'])
      await until(
        'the status names it',
        async () =>
          (await node.show('StatusText')).includes(`missing: ${certs}/never ObjectMissing: Secret demo/never`),
        patience,
      )
      t.equal(await node.show('ActiveState'), 'activating')
      t.not(await node.show('ActiveState', 'kubelet.service'), 'active')
      await starting
      const seconds = (performance.now() - begun) / 1000
      t.ok(seconds > 29, `${seconds.toFixed(1)} s`)
      t.equal(await node.show('ActiveState', 'kubelet.service'), 'active')
      t.match(await node.show('StatusText'), `1 of 2 directories are whole; missing: ${certs}/never`)
      const said = (await node.journal()).find(({ MESSAGE }) => MESSAGE.includes('systemd starts what waits'))
      t.match(said, { PRIORITY: '4', MESSAGE: /never/ })
      put(node, 'never', '1')
      const whole = async () => (await node.show('StatusText')) === '2 of 2 directories are whole'
      await until('all is whole', whole, patience)
    },
  )

  for (const [how, signal] of [
    ['an event loop that hangs', 'SIGUSR2'],
    ['a queue that starts nothing, while timers run,', 'SIGWINCH'],
    ['a process that is stopped', 'SIGSTOP'],
  ] as const) {
    await t.test(`${how} is ended by the watchdog, and starts again`, async (t) => {
      const node = await booted(t)
      const { space } = node
      await node.letHang(5)
      await space.demand('systemctl', ['start', 'holdfast.service'])
      const first = await node.show('MainPID')
      if (signal === 'SIGUSR2') {
        // Twice the patience of systemd.
        await new Promise((resolve) => setTimeout(resolve, 10_000))
        t.equal(await node.show('MainPID'), first, 'an agent that works is left alone')
      }
      await space.demand('systemctl', ['kill', `--signal=${signal}`, '--kill-who=main', 'holdfast.service'])
      await until('it starts again', async () => Number(await node.show('NRestarts')) > 0, patience)
      await until('it is active', async () => (await node.show('ActiveState')) === 'active', patience)
      t.not(await node.show('MainPID'), first)
      const log = await space.demand('journalctl', ['--no-pager', '--output=cat', '--unit=holdfast.service'])
      t.match(log, /Failed with result 'watchdog'/)
      put(node, 'web', '2')
      const updated = () => readFileSync(space.onDisk(`${certs}/web/key`), 'utf8') === '2'
      await until('it publishes', updated, patience)
    })
  }

  await t.test('the first boot, where what waits for the agent starts the API server', async (t) => {
    const node = await booted(t)
    const { space } = node
    const port = await startsApiServer(node)
    await space.demand('systemctl', ['start', 'kubelet.service'])
    t.match(await node.show('StatusText'), `0 of 1 directories are whole; missing: ${certs}/web `)
    const pki = (file: string): string => space.onDisk(`/etc/kubernetes/pki/${file}`)
    const pair = { certificate: pki('admin.crt'), key: pki('admin.key') }
    const api = new ApiClient(port, pki('ca.crt'), pair)
    t.teardown(() => api.disconnect())
    await until('the API server is ready', async () => (await api.call('GET', '/readyz')).status === 200, patience)
    await api.demand('POST', '/api/v1/namespaces', { metadata: { name: 'demo' } })
    await api.demand('POST', '/api/v1/namespaces/demo/secrets', {
      metadata: { name: 'web' },
      stringData: { key: 'from the API' },
    })
    const whole = async () => (await node.show('StatusText')) === '1 of 1 directories are whole'
    await until('all is whole', whole, patience)
    t.equal(readFileSync(space.onDisk(`${certs}/web/key`), 'utf8'), 'from the API')
    await space.demand('systemctl', ['restart', 'holdfast.service'])
  })
}

/** Installs kubelet.service in such a form that it runs a real API server, and the agent's way to that; returns its port. */
async function startsApiServer(node: SystemdNode): Promise<number> {
  const { space } = node
  const pki = space.onDisk('/etc/kubernetes/pki')
  const authority = await Authority.create(pki)
  const [serving, admin] = [await authority.server('api'), await authority.client('admin', 'system:masters')]
  const [port, etcd, peer] = [await freePort(), await freePort(), await freePort()]
  const kubeconfig = '/etc/holdfast/kubeconfig'
  const onNode = (path: string): string => path.replace(space.onDisk('/'), '/')
  writeKubeconfig(space.onDisk(kubeconfig), {
    server: `https://127.0.0.1:${port}`,
    authority: onNode(authority.certificate),
    user: { 'client-certificate': onNode(admin.certificate), 'client-key': onNode(admin.key) },
  })
  node.configure([web], { namespace: 'demo', kubernetes: { kubeconfig } })
  const [client, other] = [`http://127.0.0.1:${etcd}`, `http://127.0.0.1:${peer}`]
  const script = [
    [
      ...[await findProgram('etcd'), '--data-dir=/var/lib/kubelet/etcd', '--unsafe-no-fsync', '--log-level=warn'],
      ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`, `--listen-peer-urls=${other}`],
      ...[`--initial-cluster=default=${other}`, `--initial-advertise-peer-urls=${other}`, '&'],
    ],
    [
      ...['exec', await findProgram('kube-apiserver'), `--etcd-servers=${client}`, `--secure-port=${port}`],
      ...['--bind-address=127.0.0.1', `--client-ca-file=${onNode(authority.certificate)}`],
      ...[`--tls-cert-file=${onNode(serving.certificate)}`, `--tls-private-key-file=${onNode(serving.key)}`],
      ...[`--service-account-key-file=${onNode(serving.certificate)}`],
      ...[`--service-account-signing-key-file=${onNode(serving.key)}`, '--authorization-mode=RBAC'],
      ...['--service-account-issuer=https://kubernetes.default.svc', '--service-cluster-ip-range=10.0.0.0/24'],
      '--disable-admission-plugins=ServiceAccount',
    ],
  ]
  const file = '/etc/kubernetes/start-api-server.sh'
  writeFileSync(space.onDisk(file), script.map((line) => line.join(' ')).join('\n'))
  const unit = `[Service]\nType=exec\nExecStart=/bin/sh ${file}\n`
  await node.installAfterHoldfast('kubelet.service', unit)
  return port
}
