/** A node: containerd and a kubelet, in namespaces of their own, on a disk of their own. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../e2e/assets.js'
import { Authority } from '../e2e/authority.js'
import type { Cluster } from '../e2e/cluster.js'
import { type Owner, workingDirectory } from '../e2e/guard.js'
import { writeKubeconfig } from '../e2e/kubeconfig.js'
import { makeCgroups } from './cgroups.js'
import { Containerd } from './containerd.js'
import { archiveProgram } from './image-archive.js'
import { Kubelet, manifestDirectory, type KubeletOptions } from './kubelet.js'
import { Space } from './space.js'
import { buildWorkload, workloadImage } from './workload.js'

const sandboxImage = 'holdfast.test/pause:1'

export interface NodeOptions {
  readonly name?: string
  /** The cluster that the kubelet registers with; absent: standalone. */
  readonly cluster?: Cluster
  readonly fileCheckFrequency?: string
  /** See KubeletOptions. */
  readonly ownPace?: boolean
}

export class TestNode {
  private constructor(
    readonly name: string,
    readonly space: Space,
    readonly containerd: Containerd,
    readonly kubelet: Kubelet,
    /** Path of the workload program on this machine. */
    readonly workload: string,
  ) {}

  /** Resolves when kubelet answers. It ends with the test `t`, which gets the end of the kubelet's log if it fails. */
  static async start(t: Owner, options: NodeOptions = {}): Promise<TestNode> {
    const { name = 'node-1', cluster, fileCheckFrequency = '20s', ownPace = false } = options
    const [workload, kubeletProgram] = await Promise.all([buildWorkload(), findProgram('kubelet')])
    const cgroupRoot = makeCgroups(`holdfast-test-${process.pid}`)
    const space = await Space.create(mkdtempSync(join(workingDirectory, 'node-')))
    t.teardown(() => space.end())
    mkdirSync(space.onDisk(manifestDirectory), { recursive: true })
    const containerd = await Containerd.start(space, sandboxImage)
    await containerd.load(await archiveProgram(workload, workloadImage, ['serve']))
    await containerd.load(await archiveProgram(workload, sandboxImage, ['pause']))
    const kubeconfig = '/etc/kubernetes/kubelet.kubeconfig'
    if (cluster) await writeNodeKubeconfig(cluster, name, space.onDisk(kubeconfig))
    const kubelet = await Kubelet.start(space, {
      program: kubeletProgram,
      nodeName: name,
      cgroupRoot,
      fileCheckFrequency,
      ownPace,
      ...(await makeKeys(name, cluster?.api.authority, space)),
      ...(cluster && { kubeconfig }),
    })
    t.teardown(() => {
      if (!t.passing()) t.comment([kubelet.tail(40), ...containerLogs(space)].join('\n'))
    })
    return new TestNode(name, space, containerd, kubelet, workload)
  }
}

/** The end of what each container has written. Kept only for those whose pods are still there. */
function containerLogs(space: Space): string[] {
  const directory = space.onDisk('/var/log/pods')
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.log'))
    .map((file) => `${file}:\n${readFileSync(join(directory, file), 'utf8').slice(-3000)}`)
}

/** Of the cluster's authority, so that its API server may ask kubelet; without a cluster, of a new one. */
async function makeKeys(
  name: string,
  cluster: Authority | undefined,
  space: Space,
): Promise<Pick<KubeletOptions, 'authority' | 'serving' | 'client'>> {
  const authority = cluster ?? (await Authority.create(space.onDisk('/etc/kubernetes/pki')))
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) =>
    all.filter(({ internal }) => !internal).map(({ address }) => address),
  )
  return {
    authority: authority.certificate,
    serving: await authority.server('kubelet', [name, ...addresses]),
    client: await authority.client('kubelet-client', 'system:masters'),
  }
}

/** With the certificate of a node: the API server shows it the objects of its own pods, and no more. */
async function writeNodeKubeconfig({ api }: Cluster, nodeName: string, file: string): Promise<void> {
  const pair = await api.authority.client(`system:node:${nodeName}`, 'system:nodes')
  writeKubeconfig(file, {
    server: api.url,
    authority: api.authority.certificate,
    user: { 'client-certificate': pair.certificate, 'client-key': pair.key },
  })
}
