/**
 * The agent as deploy/ runs it on a node: as the DaemonSet's pod, scheduled and started by the cluster's own programs, from the
 * image. Another pod, which mounts the parent of the target, reads its publications.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { command } from '../deploy/operations-page.js'
import { until } from '../until.js'
import { ClusterPods, isReady } from './cluster-pods.js'
import { startCluster } from './controllers.js'
import { apply, templateOf, uninstall, type Overlay } from './deploy.js'
import { recordedEvent } from './events.js'
import { loadImage } from './image.js'
import { TestNode } from './node.js'
import { addressOf, documented, eventsOfRotation, questionsOfOperator } from './operator.js'
import { health, healthPortFree, parent, Reader, Rotation, target } from './reading.js'
import { unfit } from './requirements.js'
import { conditionOf, type Condition } from './status.js'
import { isKind } from '../crash/judge/names.js'

/** `minInterval` lets one a second through, after a burst. */
const rotations = Number(process.env.HOLDFAST_NODE_ROTATIONS ?? 60)

const label = 'app.kubernetes.io/name=holdfast'

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

async function suite(): Promise<void> {
  await healthPortFree(t)
  const cluster = await startCluster(t)
  const node = await TestNode.start(t, { cluster })
  const { space } = node
  await loadImage(node.containerd)
  const pods = new ClusterPods(cluster, space, 'holdfast')
  const rotation = await Rotation.prepare(cluster, node, rotations + 20)
  const condition = (type: string): Condition | undefined => conditionOf(space, target, type)
  const get = async (path: string): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${health}${path}`, { headers: { connection: 'close' } })
    return { status: response.status, text: await response.text() }
  }

  const shown = (beginning: string): Promise<string> => documented(cluster, beginning)

  await t.test('the agent is unready until the first publication', async (t) => {
    await apply(cluster, { base: 'base' })
    const waiting = await pods.one('the agent runs', label, ({ status }) =>
      Boolean(status.containerStatuses?.[0]?.state.running),
    )
    await until(
      'readiness tells what is missing',
      async () => {
        const { status, text } = await get('/readyz')
        return status === 503 && /node-certs\/serving.*ObjectMissing/.test(text)
      },
      { within: 90_000 },
    )
    t.equal((await get('/livez')).status, 200)
    await until(
      'kubelet has asked, and has this answer',
      async () => {
        const { body } = await cluster.api.admin.call('GET', '/api/v1/namespaces/holdfast/events')
        return (body as { items: { reason: string; message: string }[] }).items.some(
          (event) => event.reason === 'Unhealthy' && /Readiness probe failed.*503/.test(event.message),
        )
      },
      { within: 90_000 },
    )
    const [still] = await pods.list(label)
    t.ok(still && !isReady(still), 'the pod is not ready')
    t.notOk(existsSync(space.onDisk(target)), 'nothing is there yet')
    t.match(await recordedEvent(cluster, 'ObjectMissing', 'Secret/node-serving-cert'), {
      type: 'Warning',
      metadata: { namespace: 'holdfast' },
      note: `(${target} on node ${node.name})`,
    })
    t.match(await recordedEvent(cluster, 'ObjectMissing', `Node/${node.name}`), {
      type: 'Warning',
      metadata: { namespace: 'default' },
    })
    await rotation.next()
    const ready = await pods.one('the agent is ready', label, isReady)
    t.equal(ready.metadata.uid, waiting.metadata.uid)
    t.equal(ready.status.containerStatuses?.[0]?.restartCount, 0)
    t.equal((await get('/readyz')).status, 200)
  })

  await t.test('the agent reports each publication on the Secret and on the Node', (t) =>
    eventsOfRotation(t, cluster, node, rotation),
  )

  await t.test('the questions of docs/operations.md get their answers', async (t) => {
    const { metadata } = await pods.one('one agent', label, isReady)
    await questionsOfOperator(t, cluster, metadata.name)
  })

  await t.test(`a pod that mounts the parent reads each of ${rotations} rotations`, async (t) => {
    const reader = await Reader.create(pods, node)
    const first = await reader.reads(rotation.newest)
    for (let count = 0; count < rotations; count++) await reader.reads(await rotation.next())
    const { instance, findings } = await reader.report()
    t.equal(instance, first.instance, 'by one container')
    t.equal(findings?.distinct, rotations + 1, 'each of them')
    t.strictSame(findings?.faults, [], 'each whole, with the key that belongs to it, and never an older one')
    t.comment(`${findings?.reads} reads, of which ${findings?.stale} began again in the next directory`)
    const [agent] = await pods.list(label)
    t.equal(agent?.status.containerStatuses?.[0]?.restartCount, 0)
    const staging = () => readdirSync(space.onDisk(parent)).filter(isKind('staging', 'foreign'))
    // Readers see the last rotation before the agent has removed the directory that it replaced.
    await until('the last of the old directories is removed', () => staging().length === 0, { within: 30_000 })
    t.strictSame(staging(), [], 'no staging is left')
  })

  await t.test('the agent sees a mount that the host makes on the target, and does not lose it', async (t) => {
    await space.demand('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'foreign', target])
    await space.demand('touch', [`${target}/the-host-s`])
    await rotation.next()
    await until('the target is unfit', () => condition('Published')?.reason === 'TargetUnfit', {
      within: 90_000,
    })
    t.match(condition('Published')?.message, /serving is a mount point; nothing was changed/)
    const warning = await recordedEvent(cluster, 'TargetUnfit', `Node/${node.name}`)
    t.match(warning, { type: 'Warning', note: /serving is a mount point/ })
    const mounts = await space.demand('cat', ['/proc/self/mounts'])
    t.match(mounts, `foreign ${target} tmpfs`, 'the mount of the host is still there')
    t.equal(await space.demand('ls', [target]), 'the-host-s\n')
    await space.demand('umount', [target])
    await rotation.next()
    const published = () => readFileSync(space.onDisk(`${target}/secrets/node-serving-cert/tls.crt`), 'utf8')
    // The version before may come first, now that nothing is in its way.
    await until('the next version is published', () => published() === rotation.pair?.certificate, {
      within: 180_000,
    })
    await until('and its condition says so', () => condition('Published')?.status === 'True')
  })

  await t.test(
    "for another owner, the component's capabilities suffice, and check names each missing one",
    async (t) => {
      const owned = '/etc/kubernetes/node-certs/owned'
      const configuration = {
        apiVersion: 'holdfast.dev/v1alpha1',
        kind: 'AgentConfiguration',
        stateDirectory: '/var/lib/holdfast',
        source: { namespace: 'holdfast', kubernetes: {} },
        directories: [{ path: owned, owner: '1234:1234', contents: [{ secret: 'node-serving-cert' }] }],
        server: { address: '127.0.0.1:10808' },
      }
      const components = ['other-owners', 'metrics', 'seccomp', 'critical-quota']
      const overlay: Overlay = { base: 'base', components, configuration }
      await apply(cluster, overlay)
      await pods.one('the agent with more capabilities is ready', label, (pod) => {
        const { capabilities } = pod.spec.containers[0]?.securityContext ?? {}
        return capabilities?.add?.length === 3 && isReady(pod)
      })
      const file = join(owned, 'tls.key')
      t.equal(statSync(space.onDisk(file)).uid, 1234)
      await rotation.next()
      await until(
        'a second version is published over the first',
        () => readFileSync(space.onDisk(file), 'utf8') === rotation.pair?.key,
        { within: 90_000 },
      )
      const address = await addressOf(cluster, node.name)
      const metrics = await fetch(`http://${address}:10808/metrics`, { headers: { connection: 'close' } })
      t.match(await metrics.text(), `holdfast_directory_ready{directory="${owned}"} 1`)

      await shown('kubectl -n holdfast rollout undo')
      await shown('kubectl -n holdfast rollout status')
      const [back] = await pods.list(label)
      t.ok(back && isReady(back), 'the one before is there again')
      t.strictSame(back?.spec.containers[0]?.securityContext?.capabilities?.add ?? [], [])
      t.equal((await get('/readyz')).status, 200)
      await shown('kubectl -n holdfast delete daemonset')
      t.strictSame(await pods.list(label), [], 'it is deleted when its pods have ended')

      const template = await templateOf(cluster, overlay)
      for (const missing of [undefined, 'CHOWN', 'FOWNER', 'DAC_OVERRIDE']) {
        const capabilities = ['CHOWN', 'FOWNER', 'DAC_OVERRIDE'].filter((each) => each !== missing)
        const run = async (args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
          pods.runToEnd(`${args[0]}-${missing ?? 'all'}`, node.name, template, { args, capabilities })
        const check = await run(['check', '--config=/etc/holdfast/holdfast.yaml', '--output=json'])
        const { checks } = JSON.parse(check.stdout) as { checks: { status: string; found: string }[] }
        const faults = checks.filter(({ status }) => status === 'FAULT').map(({ found }) => found)
        // And it is so: without it, the next version cannot be published.
        await rotation.next()
        const sync = await run(['sync', '--config=/etc/holdfast/holdfast.yaml', '--timeout=60s'])
        const content = readFileSync(space.onDisk(file), 'utf8')
        if (missing === undefined) {
          t.equal(check.code, 0, faults.join('; '))
          t.equal(sync.code, 0, sync.stderr)
          t.equal(content, rotation.pair?.key)
        } else {
          t.equal(check.code, 4, `without ${missing}, check finds a fault`)
          t.equal(faults.length, 1, faults.join('; '))
          t.match(faults[0], `CAP_${missing} is missing`)
          t.equal(sync.code, 1, `without ${missing}, sync fails: ${sync.stderr}`)
          t.not(content, rotation.pair?.key)
        }
      }
    },
  )

  await t.test('an uninstall with the namespace and its Secrets leaves the published content', async (t) => {
    await uninstall(cluster, { base: 'base' })
    t.equal((await cluster.api.admin.call('GET', '/api/v1/namespaces/holdfast')).status, 404)
    for (const line of ['rm -rf /etc/kubernetes/node-certs', 'rm -rf /var/lib/holdfast']) {
      await space.run('sh', ['-c', command(line).join(' ')])
    }
    t.strictSame(readdirSync(space.onDisk('/var/lib/holdfast')), [])
    t.strictSame(readdirSync(space.onDisk(parent)).sort(), ['owned', 'serving'])
    t.strictSame(readdirSync(space.onDisk(`${target}/secrets/node-serving-cert`)).sort(), ['tls.crt', 'tls.key'])
  })
}
