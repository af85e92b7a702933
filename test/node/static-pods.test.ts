/**
 * Static pods as a real kubelet runs them: installed from files and from the API, rotated, fallen back. A pod's container
 * reports the installed revision; kubelet's log says that it never met half a manifest.
 *
 * HOLDFAST_NODE_INSTALLS and HOLDFAST_NODE_ROTATIONS set how many there are.
 */
import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { Cluster } from '../e2e/cluster.js'
import { until } from '../until.js'
import { manifestDirectory } from './kubelet.js'
import { TestNode } from './node.js'
import { unfit } from './requirements.js'
import { resources, StaticPod } from './static-pod.js'
import { makePairs, type Pair } from './workload.js'

const installs = Number(process.env.HOLDFAST_NODE_INSTALLS ?? 30)
const rotations = Number(process.env.HOLDFAST_NODE_ROTATIONS ?? 100)
/** At once: kubelet takes 10 s and more to replace a static pod. */
const pods = 6
const annotation = 'startup-monitor.static-pods.openshift.io/fallback-for-revision'

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

async function suite(): Promise<void> {
  // A list of the manifest directory each second is a list in the middle of many installations.
  const node = await TestNode.start(t, { fileCheckFrequency: '1s' })
  const { kubelet } = node
  const cluster = await Cluster.start()
  t.teardown(() => cluster.stop())
  await cluster.api.admin.demand('POST', '/api/v1/nodes', { metadata: { name: node.name } })
  const pairs = await makePairs(node.workload, Math.max(installs, rotations) + 3)
  const pair = (serial: number): Pair => {
    const found = pairs[serial - 1]
    if (!found) throw new Error(`there is no pair ${serial}`)
    return found
  }

  /** Each installation is seen running. */
  const installed = async (t: Test): Promise<void> => {
    const revisions = Math.ceil(installs / pods)
    const names = Array.from({ length: pods }, (_, index) => `web-${index + 1}`)
    const life = async (name: string): Promise<void> => {
      const reads = `${resources}/${name}-pod-REVISION`
      const pod = await StaticPod.create(node, cluster, { name, reads })
      const instances = new Set<string>()
      for (let revision = 1; revision <= revisions; revision++) {
        if (revision % 2 === 1) await pod.installFromFiles(revision, pair(revision))
        else {
          await pod.putRevision(revision, pair(revision))
          await pod.installFromApi(revision)
        }
        const { instance, findings } = await pod.runs(revision)
        instances.add(instance)
        t.strictSame(findings?.faults, [], `${name}: revision ${revision} reads what it was installed with`)
      }
      t.equal(instances.size, revisions, `${name}: each ran once`)
      t.equal(kubelet.manifestChanges('ADD', pod.fullName), revisions, 'kubelet met each once')
      t.equal(kubelet.manifestChanges('REMOVE', pod.fullName), revisions - 1, 'and none went but for the next')
      t.equal(kubelet.kills(pod.fullName), revisions - 1, 'nor was stopped')
    }
    await Promise.all(names.map(life))
    t.strictSame(kubelet.manifestFaults(), [], 'kubelet met no manifest that it could not read')
  }

  /** A pod that mounts cert-dir reads each rotation. */
  const rotated = async (t: Test): Promise<void> => {
    const certificates = `${resources}/certs-certs`
    const pod = await StaticPod.create(node, cluster, {
      name: 'certs',
      reads: certificates,
      flags: [`--cert-dir=${certificates}`, '--cert-secrets=serving'],
    })
    await pod.putRevision(1, pair(1))
    await pod.putSecret('serving', pair(1))
    await pod.installFromApi(1)
    const { instance } = await pod.runs(1)
    for (let serial = 2; serial <= rotations + 1; serial++) {
      await pod.putSecret('serving', pair(serial))
      await pod.installFromApi(1)
      await pod.runs(1, serial)
    }
    const { findings, instance: last } = await pod.ask()
    t.equal(last, instance, 'by the container that was there at first')
    t.match(findings, { distinct: rotations + 1, newest: rotations + 1 }, 'each of them')
    t.strictSame(findings?.faults, [], 'each whole, with the key that belongs to it, and never an older one')
    t.comment(`${findings?.reads} reads, of which ${findings?.stale} began again in the next directory`)
    t.equal(kubelet.kills(pod.fullName), 0)
    t.strictSame(kubelet.manifestFaults(), [])
  }

  // Side by side, since the installations are mostly waited for: as one test, for tap 21.8 mixes up the results of two.
  await t.test(
    `kubelet runs each of ${installs} installations, beside ${rotations} rotations of cert-dir`,
    async (t) => {
      await Promise.all([installed(t), rotated(t)])
    },
  )

  await t.test('kubelet follows by inotify alone, and an unready revision gives way again', async (t) => {
    await kubelet.end('SIGTERM')
    await kubelet.start({ fileCheckFrequency: '24h' })
    const name = 'falls'
    const pod = await StaticPod.create(node, cluster, { name, reads: `${resources}/${name}-pod-REVISION` })
    await pod.installFromFiles(1, pair(1))
    await pod.runs(1)
    const good = await pod.monitor(1, '120s')
    t.equal(good.code, 0, good.stderr)
    t.match(good.stdout, /revision 1 is ready; the monitor recorded/)

    await pod.installFromFiles(2, pair(2), { READY: 'never' })
    const bad = await pod.runs(2)
    const fallen = await pod.monitor(2, '6s')
    t.equal(fallen.code, 1, fallen.stderr)
    t.match(fallen.stdout, /fell back to revision 1/)
    const again = await pod.runs(1)
    t.not(again.instance, bad.instance)
    t.strictSame(again.findings?.faults, [])
    const seen = await until('kubelet tells of the pod with the annotation', async () =>
      (await kubelet.pods()).find(({ metadata }) => metadata.annotations?.[annotation] === '2'),
    )
    t.match(seen.metadata, { name: `${name}-${node.name}`, labels: { revision: '1' } })
    t.match(pod.live().metadata, { labels: { revision: '1' }, annotations: { [annotation]: '2' } })
    t.equal(kubelet.manifestChanges('ADD', pod.fullName), 3)
    t.strictSame(kubelet.manifestFaults(), [])

    const torn = JSON.stringify(pod.live()).slice(0, 100)
    writeFileSync(node.space.onDisk(`${manifestDirectory}/torn.yaml`), torn)
    await until('half a manifest, as another program may leave it, would have been noticed', () =>
      kubelet.manifestFaults().some((line) => line.includes('torn.yaml')),
    )
  })
}
