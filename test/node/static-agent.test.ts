/**
 * The agent as a static pod with a kubeconfig of the host, which goes on while API server and kubelet are away, and after it was
 * killed itself; and the installer as a Job, which brings another static pod to the node. From deploy/, from the image.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { command } from '../deploy/operations-page.js'
import { writeKubeconfig } from '../e2e/kubeconfig.js'
import { Namespace } from '../e2e/namespace.js'
import { freePort } from '../e2e/ports.js'
import { until } from '../until.js'
import { ClusterPods } from './cluster-pods.js'
import { startCluster } from './controllers.js'
import { apply } from './deploy.js'
import { recordedEvent } from './events.js'
import { holdfast } from './holdfast.js'
import { loadImage } from './image.js'
import { manifestDirectory, type ContainerStatus } from './kubelet.js'
import { TestNode } from './node.js'
import { health, healthPortFree, parent, Reader, Rotation, target } from './reading.js'
import { unfit } from './requirements.js'
import { staticPodText } from './static-pod.js'
import { conditionOf } from './status.js'
import { askWorkload, makePairs } from './workload.js'
import { project } from '../project.js'
import { isKind } from '../crash/judge/names.js'

/** In each of the four parts; `minInterval` lets one a second through, after a burst. */
const rotations = Math.ceil(Number(process.env.HOLDFAST_NODE_ROTATIONS ?? 60) / 4)
const deployed = join(project, 'deploy/static-pod')
const patience = { within: 180_000, every: 50 }

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

async function suite(): Promise<void> {
  await healthPortFree(t)
  const cluster = await startCluster(t)
  const node = await TestNode.start(t, { cluster })
  const { kubelet, space } = node
  await loadImage(node.containerd)
  const pods = new ClusterPods(cluster, space, 'holdfast')
  const rotation = await Rotation.prepare(cluster, node, rotations * 4 + 3)

  /** The agent's container, as kubelet tells of it. */
  const agent = async (): Promise<ContainerStatus | undefined> =>
    (await kubelet.pod(`holdfast-${node.name}`))?.status.containerStatuses?.[0]
  const readyz = async (): Promise<number> =>
    (await fetch(`${health}/readyz`, { headers: { connection: 'close' } })).status

  await apply(cluster, { base: 'static-pod' })
  await rotation.next()
  const home = space.onDisk('/etc/kubernetes/holdfast')
  mkdirSync(home, { mode: 0o700 })
  const pair = await cluster.api.authority.client(`holdfast:node:${node.name}`, 'holdfast:control-plane')
  writeKubeconfig(join(home, 'kubeconfig'), {
    server: cluster.api.url,
    authority: '/etc/kubernetes/holdfast/ca.crt',
    user: {
      'client-certificate-data': readFileSync(pair.certificate).toString('base64'),
      'client-key-data': readFileSync(pair.key).toString('base64'),
    },
  })
  writeFileSync(join(home, 'ca.crt'), readFileSync(cluster.api.authority.certificate))
  writeFileSync(join(home, 'holdfast.yaml'), readFileSync(join(deployed, 'holdfast.yaml')), { mode: 0o600 })

  let reader: Reader

  await t.test('the static agent publishes once its manifest is in the manifest directory', async (t) => {
    const manifest = readFileSync(join(deployed, 'holdfast-pod.yaml'), 'utf8')
    const written = await holdfast(
      space,
      ['write', `${manifestDirectory}/holdfast-pod.yaml`],
      manifest.replace(/image: holdfast:\S+/, 'image: holdfast:test'),
    )
    t.equal(written.code, 0, written.stderr)
    await until('kubelet says that it is ready', async () => (await agent())?.ready, patience)
    t.equal(await readyz(), 200)
    await recordedEvent(cluster, 'Published', `Node/${node.name}`)
    await recordedEvent(cluster, 'Published', 'Secret/node-serving-cert')
    reader = await Reader.create(pods, node)
    await reader.reads(1)
    for (let count = 0; count < rotations; count++) await reader.reads(await rotation.next())
    const name = `holdfast-${node.name}`
    await cluster.kubectl(command('kubectl -n kube-system exec', { 'holdfast-NODE': name }).slice(1))
    await until(
      'it has read its configuration again',
      async () => (await cluster.kubectl(['-n', 'kube-system', 'logs', name])).includes('holdfast.yaml is in force'),
      { ...patience, every: 500 },
    )
  })

  await t.test('the static agent goes on after the API server was killed, and came back', async (t) => {
    const before = await agent()
    await cluster.api.kill()
    await until(
      'the agent has noticed',
      () => conditionOf(space, target, 'Fresh')?.reason === 'SourceUnavailable',
      patience,
    )
    t.equal(await readyz(), 200, 'what is on the disk is whole: it stays ready')
    t.equal((await reader.report()).findings?.newest, rotation.newest)
    await cluster.api.start()
    for (let count = 0; count < rotations; count++) await reader.reads(await rotation.next())
    t.match(await agent(), { containerID: before?.containerID, restartCount: 0 }, 'by the same container')
  })

  await t.test('the static agent goes on after kubelet was stopped, and started again', async (t) => {
    const before = await agent()
    await kubelet.end('SIGTERM')
    for (let count = 0; count < rotations / 2; count++) await reader.reads(await rotation.next())
    await kubelet.start()
    for (let count = 0; count < rotations / 2; count++) await reader.reads(await rotation.next())
    const after = await until('kubelet tells of the agent', agent, patience)
    t.match(after, { containerID: before?.containerID, restartCount: 0 }, 'by the same container')
  })

  await t.test('the static agent goes on after its container was killed in the middle of its work', async (t) => {
    const { containerID = '' } = (await agent()) ?? {}
    const before = rotation.newest
    const stream = async (): Promise<void> => {
      for (let count = 0; count < rotations; count++) await rotation.next()
    }
    const kill = async (): Promise<void> => {
      await until('it is at work', async () => ((await reader.report()).findings?.newest ?? 0) > before, patience)
      await node.containerd.signal(containerID, 'SIGKILL')
    }
    await Promise.all([stream(), kill()])
    const { findings } = await reader.reads(rotation.newest)
    const restarted = await until(
      'kubelet has started it again, and it is ready',
      async () => {
        const status = await agent()
        return status?.restartCount === 1 && status.ready && status
      },
      patience,
    )
    t.not(restarted.containerID, containerID)
    t.strictSame(findings?.faults, [], 'each was whole, with its own key, and none older than the one before')
    t.comment(`${findings?.reads} reads, ${findings?.distinct} of ${rotation.newest} pairs`)
    await until('nothing is left over', () => leftovers().length === 0, patience)
  })

  await t.test('the installer Job brings another static pod', async (t) => {
    const port = await freePort()
    const namespace = new Namespace('holdfast', cluster.api, home)
    const [first] = await makePairs(node.workload, 1)
    await namespace.putSecret('web-serving-cert-1', {
      'tls.crt': first?.certificate ?? '',
      'tls.key': first?.key ?? '',
    })
    await namespace.putConfigMap('web-pod-1', {
      'pod.yaml': staticPodText({
        name: 'web',
        port,
        reads: '/etc/kubernetes/static-pod-resources/web-pod-REVISION',
        below: 'secrets/web-serving-cert',
      }),
    })
    await apply(cluster, { base: 'installer' })
    const report = await until('kubelet runs what it installed', () => askWorkload(port), patience)
    t.equal(report.revision, '1')
    await until(
      'it has read the pair of its revision',
      async () => (await askWorkload(port)).findings?.newest === 1,
      patience,
    )
    const [, ...waiting] = command('kubectl -n holdfast wait --for=condition=complete')
    t.match(await cluster.kubectl(waiting), 'job.batch/install-web-1-node-1 condition met')
    t.match(await recordedEvent(cluster, 'StaticPodInstallerCompleted', 'Namespace/holdfast'), {
      type: 'Normal',
      note: 'Successfully installed revision 1',
      metadata: { namespace: 'holdfast' },
    })
    t.strictSame(kubelet.manifestFaults(), [])
  })

  function leftovers(): string[] {
    return readdirSync(space.onDisk(parent)).filter(isKind('staging', 'foreign'))
  }
}
