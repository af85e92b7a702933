/** Pods of the cluster, as its API server tells of them, and what their containers have written. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from '../e2e/cluster.js'
import { until } from '../until.js'
import type { Pod } from './kubelet.js'
import type { PodTemplate } from './deploy.js'
import type { Space } from './space.js'
import { workloadImage } from './workload.js'

/** Milliseconds that a pod may take to come or to go, on a slow machine. */
const patience = { within: 180_000, every: 100 }

export class ClusterPods {
  constructor(
    private readonly cluster: Cluster,
    private readonly space: Space,
    readonly namespace: string,
  ) {}

  /** Those with this label, but for those that are ending. */
  async list(label: string): Promise<Pod[]> {
    const path = `/api/v1/namespaces/${this.namespace}/pods?labelSelector=${encodeURIComponent(label)}`
    const { body } = await this.cluster.api.admin.call('GET', path)
    return (body as { items: (Pod & { metadata: { deletionTimestamp?: string } })[] }).items.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    )
  }

  /** Waits until there is one pod with the label for which `check` holds. */
  one(what: string, label: string, check: (pod: Pod) => boolean): Promise<Pod> {
    return until(
      what,
      async () => {
        const pods = await this.list(label)
        const [pod] = pods
        if (pods.length === 1 && pod && check(pod)) return pod
        throw new Error(pods.map(({ metadata, status }) => `${metadata.name}: ${JSON.stringify(status)}`).join())
      },
      patience,
    )
  }

  /** Waits until no pod with the label exists, not even an ending one. */
  async gone(label: string): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace}/pods?labelSelector=${encodeURIComponent(label)}`
    await until(
      `no pod ${label} is left`,
      async () => {
        const { body } = await this.cluster.api.admin.call('GET', path)
        return (body as { items: unknown[] }).items.length === 0
      },
      patience,
    )
  }

  /** A pod that mounts a directory of the host and reads the pair in one below it; it answers on the port. */
  async createReader(name: string, nodeName: string, port: number, host: string, below: string): Promise<void> {
    await this.createWorkload(name, nodeName, {
      args: ['serve', String(port), `/host/${below}`],
      mountPath: '/host',
      volume: { hostPath: { path: host, type: 'Directory' } },
    })
  }

  /** A pod of the workload's image that mounts a volume. */
  async createWorkload(
    name: string,
    nodeName: string,
    { args, mountPath, volume }: { args: readonly string[]; mountPath: string; volume: object },
  ): Promise<void> {
    await this.cluster.api.admin.demand('POST', `/api/v1/namespaces/${this.namespace}/pods`, {
      metadata: { name, labels: { app: name } },
      spec: {
        nodeName,
        hostNetwork: true,
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: false,
        tolerations: [{ operator: 'Exists' }],
        containers: [
          {
            name: 'workload',
            image: workloadImage,
            imagePullPolicy: 'Never',
            args,
            volumeMounts: [{ name: 'volume', mountPath, readOnly: true }],
          },
        ],
        volumes: [{ name: 'volume', ...volume }],
      },
    })
  }

  /** Runs a container of a template's kind, with other arguments and capabilities, to its end; returns its output. */
  async runToEnd(
    title: string,
    nodeName: string,
    template: PodTemplate,
    { args, capabilities }: { args: readonly string[]; capabilities: readonly string[] },
  ): Promise<{ code: number; stdout: string; stderr: string }> {
    const name = title.toLowerCase().replaceAll('_', '-')
    const containers = template.spec.containers.map((container) => ({
      ...container,
      args,
      livenessProbe: undefined,
      readinessProbe: undefined,
      ports: undefined,
      securityContext: { ...container.securityContext, capabilities: { drop: ['ALL'], add: capabilities } },
    }))
    await this.cluster.api.admin.demand('POST', `/api/v1/namespaces/${this.namespace}/pods`, {
      metadata: { name, labels: { app: name } },
      // The seccomp profile, which an init container brings, is on the node since the agent ran there.
      spec: { ...template.spec, nodeName, restartPolicy: 'Never', initContainers: undefined, containers },
    })
    return this.ended(name)
  }

  /** Waits until all of the pod's containers have ended; returns the exit code of the first, and their output. */
  private async ended(name: string): Promise<{ code: number; stdout: string; stderr: string }> {
    const path = `/api/v1/namespaces/${this.namespace}/pods/${name}`
    const pod = await until(
      `${name} has ended`,
      async () => {
        const found = (await this.cluster.api.admin.call('GET', path)).body as Pod
        if (['Succeeded', 'Failed'].includes(found.status.phase ?? '')) return found
        throw new Error(JSON.stringify(found.status))
      },
      patience,
    )
    const { terminated } = pod.status.containerStatuses?.[0]?.state ?? {}
    return {
      code: terminated?.exitCode ?? -1,
      stdout: this.output(pod, 'stdout'),
      stderr: this.output(pod, 'stderr'),
    }
  }

  /** The output of the pod's containers, in all of their lives, without the runtime's head of each line. */
  output(pod: Pod, stream: 'stdout' | 'stderr'): string {
    const { namespace, name, uid } = pod.metadata
    const directory = this.space.onDisk(`/var/log/pods/${namespace}_${name}_${uid}`)
    return (
      readdirSync(directory, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.log'))
        .sort()
        .flatMap((file) => readFileSync(join(directory, file), 'utf8').split('\n'))
        .map((line) => /^\S+ (\S+) ([FP]) (.*)$/.exec(line))
        // A long line comes in parts (P), of which the last one is marked otherwise (F).
        .flatMap((match) => (match?.[1] === stream ? [`${match[3]}${match[2] === 'F' ? '\n' : ''}`] : []))
        .join('')
    )
  }
}

export function isReady({ status }: Pod): boolean {
  return status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false
}
