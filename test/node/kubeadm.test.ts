/**
 * "kubeadm in ten lines" of docs/rollout.md, line by line, on a node that kubeadm has set up. etcd and kube-apiserver are static pods of
 * a real kubelet; their certificates change as one, the pods start again one after the other, all is killed in the middle, and a resume
 * finishes. Then a rollout takes a manifest back that never becomes ready.
 */
import { X509Certificate } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t from 'tap'
import { kubeletProbe } from '../../src/static-pods/ready/probe-kubelet.js'
import { parseManifest } from '../../src/static-pods/pod/manifest.js'
import { findProgram, kubernetesVersion } from '../e2e/assets.js'
import { workingDirectory } from '../e2e/guard.js'
import { freePort } from '../e2e/ports.js'
import { project } from '../project.js'
import { seeingAll } from '../seeing-all.js'
import { until } from '../until.js'
import { holdfastProgram } from './holdfast.js'
import { archiveProgram } from './image-archive.js'
import { manifestDirectory } from './kubelet.js'
import { TestNode } from './node.js'
import { unfit } from './requirements.js'

const patience = { within: 180_000, every: 200 }
/** A copy of the certificates, which no rollout exchanges. */
const outside = '/etc/kubernetes/probe'
const adminKubeconfig = '/etc/kubernetes/admin.conf'

/** kubeadm's own patches of its manifests: a pod is seen to be ready, and ends, within a second or two instead of up to thirty. */
const patches = '/etc/kubernetes/patches'
const quicker = [
  ...Object.entries({ initialDelaySeconds: 0, periodSeconds: 1, failureThreshold: 240 }).map(([field, value]) => ({
    op: 'add',
    path: `/spec/containers/0/startupProbe/${field}`,
    value,
  })),
  { op: 'add', path: '/spec/terminationGracePeriodSeconds', value: 2 },
]

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

/** The lines of the page's example, those that only set variables apart. */
function linesOfPage(): { variables: string[]; steps: string[] } {
  const page = readFileSync(join(project, 'docs/rollout.md'), 'utf8')
  const block = /```sh\n([^`]*kubeadm certs renew[^`]*)```/.exec(page)?.[1] ?? ''
  const lines = block.replaceAll('\\\n', '').trim().split('\n')
  const isVariable = (line: string): boolean => /^[A-Z]+=/.test(line)
  return { variables: lines.filter(isVariable), steps: lines.filter((line) => !isVariable(line)) }
}

/** The values that kubeadm gets; all else is its default. */
function configure(name: string, ports: { api: number; etcd: number; peer: number; metrics: number }): string {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((each) => each && !each.internal && each.family === 'IPv4')?.address
  if (address === undefined) throw new Error('kubeadm takes no loopback address, and this machine has no other')
  const args = (values: Record<string, string>) => Object.entries(values).map(([name, value]) => ({ name, value }))
  const [client, peer] = [`https://127.0.0.1:${ports.etcd}`, `https://127.0.0.1:${ports.peer}`]
  const apiVersion = 'kubeadm.k8s.io/v1beta4'
  const cluster = {
    apiVersion,
    kind: 'ClusterConfiguration',
    kubernetesVersion,
    imageRepository: 'holdfast.test',
    apiServer: { extraArgs: args({ 'etcd-servers': client }) },
    etcd: {
      local: {
        dataDir: '/var/lib/etcd',
        extraArgs: args({
          'listen-client-urls': client,
          'advertise-client-urls': client,
          'listen-peer-urls': peer,
          'initial-advertise-peer-urls': peer,
          'initial-cluster': `${name}=${peer}`,
          'listen-metrics-urls': `http://127.0.0.1:${ports.metrics}`,
          'unsafe-no-fsync': 'true',
        }),
      },
    },
  }
  const init = {
    apiVersion,
    kind: 'InitConfiguration',
    nodeRegistration: { name },
    localAPIEndpoint: { advertiseAddress: address, bindPort: ports.api },
    patches: { directory: patches },
  }
  return `${JSON.stringify(cluster)}\n---\n${JSON.stringify(init)}\n`
}

async function suite(): Promise<void> {
  const name = hostname().toLowerCase()
  const node = await TestNode.start(t, { name })
  const { space, kubelet, containerd } = node
  const [port, etcd, peer, metrics, readOnlyPort] = [
    ...[await freePort(), await freePort(), await freePort()],
    ...[await freePort(), await freePort()],
  ] as const
  const programs = mkdtempSync(join(workingDirectory, 'programs-'))
  symlinkSync(await findProgram('kubeadm'), join(programs, 'kubeadm'))
  symlinkSync(await findProgram('kubectl'), join(programs, 'kubectl'))
  writeFileSync(join(programs, 'holdfast'), `#!/bin/sh\nexec ${process.execPath} ${holdfastProgram} "$@"\n`, {
    mode: 0o755,
  })
  const onNode = (line: string): string[] => ['-ec', `PATH=${programs}:$PATH; cd /etc/kubernetes; ${line}`]
  const live = (pod: string): string => space.onDisk(`${manifestDirectory}/${pod}.yaml`)
  const pki = space.onDisk('/etc/kubernetes/pki')

  // kubelet would meet half of what kubeadm writes in place.
  await kubelet.end('SIGTERM')
  writeFileSync(space.onDisk('/etc/kubernetes/kubeadm.yaml'), configure(name, { api: port, etcd, peer, metrics }))
  mkdirSync(space.onDisk(patches))
  for (const pod of ['etcd', 'kube-apiserver']) {
    writeFileSync(space.onDisk(`${patches}/${pod}+json.json`), JSON.stringify(quicker))
  }
  for (const phase of ['certs all', 'kubeconfig all', 'etcd local', 'control-plane apiserver']) {
    await space.demand('sh', onNode(`kubeadm init phase ${phase} --config kubeadm.yaml`))
  }
  for (const program of ['etcd', 'kube-apiserver'] as const) {
    const image = /image: (\S+)/.exec(readFileSync(live(program), 'utf8'))?.[1] ?? ''
    await containerd.load(await archiveProgram(await findProgram(program), image, []))
  }
  // As kubelet makes its own: with its authority, and for the node's name, which the node knows.
  const serving = ['kubelet.crt', 'ca.crt'].map((file) => readFileSync(join(pki, file), 'utf8')).join('')
  mkdirSync(space.onDisk('/var/lib/kubelet/pki'), { recursive: true })
  writeFileSync(space.onDisk('/var/lib/kubelet/pki/kubelet.crt'), serving)
  await space.demand('sh', onNode(`echo 127.0.0.1 ${hostname()} >>/etc/hosts`))
  const asKubeadm = { kubeconfig: '/etc/kubernetes/kubelet.conf', webhook: true, readOnlyPort }
  await kubelet.start(asKubeadm)
  // With its first call kubeadm binds the group of its certificates.
  await space.demand('sh', onNode('kubeadm init phase upload-config kubeadm --config kubeadm.yaml'))
  // The API server's certificate for kubelet is in no group since 1.37: this phase binds its user.
  await space.demand('sh', onNode('kubeadm init phase bootstrap-token --config kubeadm.yaml'))

  /** The serial number of the certificate that the API server serves; rejects while it is not ready. */
  const served = async (): Promise<string> => {
    const socket = connect({ port, host: '127.0.0.1', servername: name, ca: readFileSync(join(pki, 'ca.crt')) })
    try {
      return await new Promise((resolve, reject) => {
        socket.once('error', reject)
        socket.once('secureConnect', () => resolve(socket.getPeerCertificate().serialNumber))
      })
    } finally {
      socket.destroy()
    }
  }
  const { variables, steps } = linesOfPage()
  const [one = '', copy = '', renew = '', all = '', clean = '', ...more] = steps
  if (clean === '' || more.length > 0)
    throw new Error(`the page has other lines than this test knows: ${steps.join('; ')}`)
  const page = (line: string): string[] =>
    onNode([...variables, line].join('\n').replaceAll(':10250', `:${kubelet.port}`).replaceAll(':6443', `:${port}`))
  const first = await served()

  await t.test('rollout renews the certificates: killed in the middle, and finished by a resume', async (t) => {
    const before = Object.fromEntries(['etcd', 'kube-apiserver'].map((pod) => [pod, readFileSync(live(pod), 'utf8')]))
    for (const line of [copy, renew]) await space.demand('sh', page(line))
    const renewed = new X509Certificate(readFileSync(space.onDisk('/etc/kubernetes/pki.new/apiserver.crt')))
      .serialNumber
    t.not(renewed, first)
    t.equal(await served(), first)
    const rollout = space.start('holdfast', 'sh', page(`exec ${all}`))
    await until('etcd has its new manifest', () => readFileSync(live('etcd'), 'utf8') !== before.etcd, patience)
    // As a power cut: none of them ends in order.
    await Promise.all([rollout.end('SIGKILL'), kubelet.end('SIGKILL')])
    for (const id of await containerd.running()) await containerd.signal(id, 'SIGKILL')
    const kept = space.onDisk('/etc/kubernetes/.holdfast-rollout-pki')
    t.ok(existsSync(kept), 'the old certificates are there still')
    t.equal(readFileSync(live('kube-apiserver'), 'utf8'), before['kube-apiserver'], 'the next pod was not touched')
    await kubelet.start(asKubeadm)
    const resume = page(`holdfast rollout --resume --pod-manifest-dir ${manifestDirectory}`)
    const { code, stdout, stderr } = await space.run('sh', resume)
    t.equal(code, 0, stderr)
    t.match(stdout, /^ready: etcd.yaml, kube-apiserver.yaml\n/)
    t.equal(await served(), renewed)
    // On machines of tests, process 1 may belong to another user, or to another PID namespace: holdfast cannot see its files.
    if ((await seeingAll())?.length === 0) t.notOk(existsSync(kept), 'and went with the last pod ready')
    else
      t.match(
        stdout,
        /rollout-pki stays, .*: (process 1 may not be looked at|only the processes of this PID namespace are seen)/,
        'they stay where not all processes are seen',
      )
    await space.demand('sh', page(clean))
    // The pod that used them has ended, and this machine may not show that.
    rmSync(kept, { recursive: true, force: true })
  })

  await t.test("rollout renews the certificates with its probe's files outside of their directory", async (t) => {
    const before = await served()
    for (const line of [copy.replace('/etc/kubernetes/pki.new', outside), copy, renew]) {
      await space.demand('sh', page(line))
    }
    const probing = variables.map((line) => line.replace('P=/etc/kubernetes/pki', `P=${outside}`))
    const lines = [...probing, variables[0], `${all} --ready-for 1s`]
    const { code, stdout, stderr } = await space.run('sh', page(lines.join('\n')))
    t.equal(code, 0, stderr)
    t.match(stdout, /^ready: etcd.yaml, kube-apiserver.yaml\n/)
    const { serialNumber } = new X509Certificate(readFileSync(join(pki, 'apiserver.crt')))
    t.not(serialNumber, before)
    t.equal(await served(), serialNumber)
  })

  await t.test(
    'the kubelet probe works with the right that "rbac monitor" prints, and on the read-only port',
    async (t) => {
      const manifest = await parseManifest(readFileSync(live('etcd')), 'etcd')
      const tokenFile = space.onDisk('/etc/kubernetes/token')
      const ask = async (url: string, file: string | null) => {
        const access = { url, authority: join(pki, 'ca.crt'), certificate: null, key: null, tokenFile: file }
        return kubeletProbe(access).ask(manifest, AbortSignal.timeout(10_000))
      }
      const secure = `https://127.0.0.1:${kubelet.port}`
      const kubectl = async (line: string) =>
        space.demand(
          'sh',
          onNode(line.replaceAll('kubectl', `kubectl --kubeconfig ${adminKubeconfig} --namespace kube-system`)),
        )
      await kubectl('kubectl create serviceaccount monitor')
      writeFileSync(tokenFile, await kubectl('kubectl create token monitor'), { mode: 0o600 })
      t.match(await ask(secure, tokenFile), { state: 'cannot-ask', message: /^HTTP 403: it needs the verb get/ })
      const rights = `--target-name etcd --namespace kube-system --node-name ${name} --kubelet-access nodes/pods`
      await kubectl(`holdfast rbac monitor ${rights} --service-account monitor | kubectl apply --filename -`)
      // The API server, and kubelet, remember a refusal for some seconds.
      await until('the right has come', async () => (await ask(secure, tokenFile)).state === 'ready', patience)
      appendFileSync(tokenFile, 'x')
      t.match(await ask(secure, tokenFile), { state: 'cannot-ask', message: /^HTTP 401: / })
      t.match(await ask(`http://127.0.0.1:${readOnlyPort}`, null), { state: 'ready' })
    },
  )

  await t.test('rollout takes a manifest back that never becomes ready', async (t) => {
    const before = readFileSync(live('kube-apiserver'), 'utf8')
    writeFileSync(space.onDisk('/etc/kubernetes/new.yaml'), before.replaceAll(`127.0.0.1:${etcd}`, '127.0.0.1:1'))
    const { code, stdout, stderr } = await space.run('sh', page(one.replace('--timeout 5m', '--timeout 8s')))
    t.equal(code, 1, stderr)
    t.match(stdout, /^taken back \(kube-apiserver\.yaml\): /)
    t.equal(readFileSync(live('kube-apiserver'), 'utf8'), before)
    t.strictSame(kubelet.manifestFaults(), [], 'kubelet met no manifest that it could not read')
  })
}
