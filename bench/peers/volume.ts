/**
 * From a change in the Kubernetes API to the file in a pod's Secret volume, under a real kubelet with its defaults: containerd, pods that
 * mount the Secret, and holdfast's agent that keeps the same Secret, on one API server. kubelet looks at a pod again after its sync
 * period, so each change comes at a random time of it.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Random } from '../../test/random.js'
import { findProgram } from '../../test/e2e/assets.js'
import { type Owner, startProcess, withOwner, workingDirectory } from '../../test/e2e/guard.js'
import type { Namespace } from '../../test/e2e/namespace.js'
import { until } from '../../test/until.js'
import { ClusterPods, isReady } from '../../test/node/cluster-pods.js'
import { startCluster } from '../../test/node/controllers.js'
import { TestNode } from '../../test/node/node.js'
import { missingForNode } from '../../test/node/requirements.js'
import { agentCommand } from './watch.js'

export interface VolumeRow {
  /** Who keeps the file. */
  readonly keeper: string
  /** Milliseconds from the API server's answer to a change until the file is new: one for each change and file. */
  readonly delays: readonly number[]
}

/** Each looks at its volume at another time. */
const pods = ['one', 'two', 'three']
const secret = 'certs'
const key = 'tls.crt'
/** kubelet's default, in milliseconds; to this it adds up to a half, by chance (wait.Jitter in pod_workers.go). */
const syncPeriod = 60_000
const changes = { quick: 2, default: 6 }
/** Beside a sync period at its longest: kubelet's cache, and a busy machine. */
const patience = 4 * syncPeriod

/** @throws Error with what this machine lacks to be a node, or with what failed */
export async function watchVolumes(
  quick: boolean,
  seed: number,
  progress: (what: string) => void,
): Promise<VolumeRow[]> {
  const missing = await missingForNode()
  if (missing !== undefined) throw new Error(`it needs ${missing}`)
  return withOwner((owner) => measure(owner, changes[quick ? 'quick' : 'default'], new Random(seed), progress))
}

async function measure(
  owner: Owner,
  count: number,
  random: Random,
  progress: (what: string) => void,
): Promise<VolumeRow[]> {
  const { stdout } = await promisify(execFile)(await findProgram('kubelet'), ['--version'])
  const cluster = await startCluster(owner)
  const node = await TestNode.start(owner, { cluster, ownPace: true })
  const namespace = await cluster.namespace()
  await namespace.putSecret(secret, { [key]: content(0) })
  const own = mkdtempSync(join(workingDirectory, 'agent-'))
  const scene = { kubeconfig: cluster.adminKubeconfig, namespace: namespace.name, names: [secret], directory: own }
  const [program = '', ...args] = agentCommand(scene)
  const agent = startProcess(program, args, { stdio: 'ignore' })
  owner.teardown(() => agent.kill('SIGKILL'))
  const inPods = await Promise.all(
    pods.map((name) => createPod(new ClusterPods(cluster, node.space, namespace.name), name, node)),
  )
  const theirRow: VolumeRow & { delays: number[] } = { keeper: `${stdout.trim()}: kubelet's Secret volume`, delays: [] }
  const ourRow: VolumeRow & { delays: number[] } = { keeper: 'holdfast agent', delays: [] }
  const ours = join(own, secret, key)
  await Promise.all([...inPods, ours].map((path) => holds(path, content(0), 100)))
  for (let change = 1; change <= count; change++) {
    const pause = random.below(syncPeriod)
    progress(`kubelet's Secret volume, change ${change} of ${count}, after ${Math.round(pause / 1000)} s`)
    await delay(pause)
    const answered = await changed(namespace, change)
    const since = async (path: string, every: number): Promise<number> => {
      await holds(path, content(change), every)
      return performance.now() - answered
    }
    const [mine, theirs] = await Promise.all([since(ours, 1), Promise.all(inPods.map((path) => since(path, 20)))])
    ourRow.delays.push(mine)
    theirRow.delays.push(...theirs)
  }
  return [ourRow, theirRow]
}

const content = (version: number): string => `${version}\n`.padEnd(3000, 'c')

/** When the API server has answered. */
async function changed(namespace: Namespace, version: number): Promise<number> {
  await namespace.putSecret(secret, { [key]: content(version) })
  return performance.now()
}

async function holds(path: string, wanted: string, every: number): Promise<void> {
  await until(`${path} is new`, () => readFileSync(path, 'utf8') === wanted, { within: patience, every })
}

/** A pod that mounts the Secret and waits; returns the file's path as this machine sees it. */
async function createPod(pods: ClusterPods, name: string, node: TestNode): Promise<string> {
  const workload = { args: ['pause'], mountPath: '/mounted', volume: { secret: { secretName: secret } } }
  // The service account that each pod gets comes soon after its namespace.
  await until(`pod ${name} is accepted`, () => pods.createWorkload(name, node.name, workload).then(() => true))
  const { metadata } = await pods.one(`pod ${name} is ready`, `app=${name}`, isReady)
  return node.space.seen(`/var/lib/kubelet/pods/${metadata.uid}/volumes/kubernetes.io~secret/volume/${key}`)
}
