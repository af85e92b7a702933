/**
 * The worked example of docs/static-pods.md: the certificates of a control plane renewed on a node of kubeadm's kind. etcd and
 * kube-apiserver are static pods of a real kubelet and read one directory; it changes as one, the pods start again one after the other,
 * all is killed in the middle, and a resume finishes. Then a manifest that never becomes ready is taken back.
 */
import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import t from 'tap'
import { findProgram } from '../e2e/assets.js'
import { Authority } from '../e2e/authority.js'
import { freePort } from '../e2e/ports.js'
import { until } from '../until.js'
import { holdfast, startHoldfast } from './holdfast.js'
import { archiveProgram } from './image-archive.js'
import { manifestDirectory } from './kubelet.js'
import { TestNode } from './node.js'
import { unfit } from './requirements.js'

t.setTimeout(600_000)

const pki = '/etc/kubernetes/control-plane'
const patience = { within: 180_000, every: 200 }

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

async function suite(): Promise<void> {
  const node = await TestNode.start(t)
  const { space, kubelet, containerd } = node
  for (const program of ['etcd', 'kube-apiserver'] as const) {
    await containerd.load(await archiveProgram(await findProgram(program), `holdfast.test/${program}:1`, []))
  }
  const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()]
  const authority = await Authority.create(space.onDisk('/etc/kubernetes/authority'))
  const { stdout: accounts } = await promisify(execFile)('openssl', ['genrsa', '2048'])

  /** What `kubeadm certs renew all` makes: new certificates and keys of the old authority. */
  const renew = async (name: string): Promise<string> => {
    const directory = space.onDisk(name)
    mkdirSync(directory, { recursive: true })
    copyFileSync(authority.certificate, join(directory, 'ca.crt'))
    writeFileSync(join(directory, 'sa.key'), accounts, { mode: 0o600 })
    const pairs = {
      etcd: await authority.server('etcd'),
      apiserver: await authority.server('apiserver'),
      'etcd-client': await authority.client('etcd-client', 'etcd'),
    }
    for (const [file, { certificate, key }] of Object.entries(pairs)) {
      copyFileSync(certificate, join(directory, `${file}.crt`))
      copyFileSync(key, join(directory, `${file}.key`))
    }
    return new X509Certificate(readFileSync(join(directory, 'apiserver.crt'))).serialNumber
  }
  const pod = (name: string, args: readonly string[], more: object = {}): string => {
    const volumes = [
      { name: 'pki', hostPath: { path: pki, type: 'Directory' } },
      { name: 'data', hostPath: { path: '/var/lib/etcd', type: 'DirectoryOrCreate' } },
      // Go may have linked the programs with the C library.
      { name: 'lib', hostPath: { path: '/usr/lib' } },
      { name: 'lib64', hostPath: { path: '/usr/lib64' } },
    ]
    const volumeMounts = [
      { name: 'pki', mountPath: '/pki', readOnly: true },
      { name: 'data', mountPath: '/data' },
      { name: 'lib', mountPath: '/lib', readOnly: true },
      { name: 'lib64', mountPath: '/lib64', readOnly: true },
    ]
    const container = { name, image: `holdfast.test/${name}:1`, imagePullPolicy: 'Never', args, volumeMounts, ...more }
    const spec = { hostNetwork: true, terminationGracePeriodSeconds: 2, containers: [container], volumes }
    return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'kube-system' }, spec })
  }
  const etcd = pod('etcd', [
    ...['--name=node', '--data-dir=/data', `--listen-client-urls=https://127.0.0.1:${etcdPort}`],
    ...[`--advertise-client-urls=https://127.0.0.1:${etcdPort}`, `--listen-peer-urls=http://127.0.0.1:${peerPort}`],
    ...[
      `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
      `--initial-cluster=node=http://127.0.0.1:${peerPort}`,
    ],
    ...['--cert-file=/pki/etcd.crt', '--key-file=/pki/etcd.key', '--client-cert-auth', '--trusted-ca-file=/pki/ca.crt'],
    '--unsafe-no-fsync',
  ])
  const readyz = { path: '/readyz', port, host: '127.0.0.1', scheme: 'HTTPS' }
  const apiServer = (etcdAt: number): string =>
    pod(
      'kube-apiserver',
      [
        ...[`--etcd-servers=https://127.0.0.1:${etcdAt}`, '--etcd-cafile=/pki/ca.crt'],
        ...['--etcd-certfile=/pki/etcd-client.crt', '--etcd-keyfile=/pki/etcd-client.key'],
        ...['--bind-address=127.0.0.1', `--secure-port=${port}`, '--client-ca-file=/pki/ca.crt'],
        ...['--tls-cert-file=/pki/apiserver.crt', '--tls-private-key-file=/pki/apiserver.key'],
        ...['--service-account-key-file=/pki/sa.key', '--service-account-signing-key-file=/pki/sa.key'],
        ...['--service-account-issuer=https://kubernetes.default.svc', '--service-cluster-ip-range=10.0.0.0/24'],
        '--authorization-mode=RBAC',
      ],
      { readinessProbe: { httpGet: readyz, periodSeconds: 1, failureThreshold: 3 } },
    )

  const live = (name: string): string => space.onDisk(`${manifestDirectory}/${name}.yaml`)
  /** The serial number of the certificate that the API server serves; rejects while it is not ready. */
  const served = async (): Promise<string> => {
    const ca = readFileSync(authority.certificate)
    const socket = connect({ port, host: '127.0.0.1', ca })
    try {
      return await new Promise((resolve, reject) => {
        socket.once('error', reject)
        socket.once('secureConnect', () => resolve(socket.getPeerCertificate().serialNumber))
      })
    } finally {
      socket.destroy()
    }
  }
  const ready = [`--ready-url=https://127.0.0.1:${port}/readyz`, `--ready-ca=${authority.certificate}`]
  const flags = [`--pod-manifest-dir=${manifestDirectory}`, ...ready, ...kubelet.probeFlags()]

  const first = await renew(pki)
  for (const [name, text] of [['etcd', etcd] as const, ['kube-apiserver', apiServer(etcdPort)] as const]) {
    // Renamed: kubelet would meet half of what is written in place.
    writeFileSync(`${space.onDisk(manifestDirectory)}/.${name}`, text)
    renameSync(`${space.onDisk(manifestDirectory)}/.${name}`, live(name))
  }
  await until('the control plane serves', async () => (await served()) === first, patience).catch((error: unknown) => {
    t.fail('the control plane serves')
    throw error
  })

  await t.test('certificates renewed: killed in the middle, and finished by a resume', async (t) => {
    const renewed = await renew('/etc/kubernetes/control-plane.new')
    const rollout = startHoldfast(space, [
      ...['rollout', ...['etcd', 'kube-apiserver'].map((name) => `${manifestDirectory}/${name}.yaml`), ...flags],
      ...['--resources=/etc/kubernetes/control-plane.new', `--resource-dir=${pki}`, '--timeout=120s'],
    ])
    await until('etcd has its new manifest', () => readFileSync(live('etcd'), 'utf8') !== etcd, patience)
    // As a power cut: none of them ends in order.
    await Promise.all([rollout.end('SIGKILL'), kubelet.end('SIGKILL')])
    for (const id of await containerd.running()) await containerd.signal(id, 'SIGKILL')
    const kept = space.onDisk('/etc/kubernetes/.holdfast-rollout-control-plane')
    t.ok(existsSync(kept), 'the old certificates are there still')
    t.equal(readFileSync(live('kube-apiserver'), 'utf8'), apiServer(etcdPort), 'the next pod was not touched')
    await kubelet.start()
    const { code, stdout, stderr } = await holdfast(space, [
      'rollout',
      '--resume',
      `--pod-manifest-dir=${manifestDirectory}`,
    ])
    t.equal(code, 0, stderr)
    t.equal(stdout, 'ready: etcd.yaml, kube-apiserver.yaml\n')
    t.equal(await served(), renewed)
    t.notOk(existsSync(kept), 'and went with the last pod ready')
  })

  await t.test('a manifest that never becomes ready is taken back', async (t) => {
    const before = readFileSync(live('kube-apiserver'), 'utf8')
    const source = space.onDisk('/etc/kubernetes/kube-apiserver.yaml')
    writeFileSync(source, apiServer(1))
    const { code, stdout, stderr } = await holdfast(space, ['rollout', source, ...flags, '--timeout=8s'])
    t.equal(code, 1, stderr)
    t.match(stdout, /^taken back \(kube-apiserver\.yaml\): /)
    t.equal(readFileSync(live('kube-apiserver'), 'utf8'), before)
    await until('the control plane serves again', served, patience)
    t.strictSame(kubelet.manifestFaults(), [], 'kubelet met no manifest that it could not read')
  })
}
