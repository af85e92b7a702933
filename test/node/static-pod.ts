/** A static pod and its revisions, installed as an operator does: from files, or from the API. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from '../e2e/cluster.js'
import type { Namespace } from '../e2e/namespace.js'
import { freePort } from '../e2e/ports.js'
import { until } from '../until.js'
import { holdfast } from './holdfast.js'
import { manifestDirectory } from './kubelet.js'
import type { TestNode } from './node.js'
import type { Ended } from './space.js'
import { askWorkload, workloadImage, type Pair, type Report } from './workload.js'

export const resources = '/etc/kubernetes/static-pod-resources'
/** kubelet tries to start a static pod again 10 to 15 s after it found the old one still ending. The rest is for slow machines. */
const patience = { within: 180_000, every: 50 }

export interface StaticPodOptions {
  readonly name: string
  /** The directory of the host that it reads; below it, `secrets/serving`. REVISION in it is substituted. */
  readonly reads: string
  /** Further flags of each installation from the API. */
  readonly flags?: readonly string[]
}

export class StaticPod {
  private constructor(
    private readonly node: TestNode,
    private readonly cluster: Cluster,
    private readonly namespace: Namespace,
    readonly port: number,
    private readonly options: StaticPodOptions,
  ) {}

  /** Prepares one; nothing is installed yet. */
  static async create(node: TestNode, cluster: Cluster, options: StaticPodOptions): Promise<StaticPod> {
    return new StaticPod(node, cluster, await cluster.namespace(), await freePort(), options)
  }

  /** As kubelet names it in its log. */
  get fullName(): string {
    return `kube-system/${this.options.name}-${this.node.name}`
  }

  private get lock(): string {
    return `/etc/kubernetes/${this.options.name}-installer.lock`
  }

  /** The manifest that kubelet reads, as it is now. */
  live(): { metadata: { labels: { revision: string }; annotations?: Record<string, string> } } {
    const path = this.node.space.onDisk(`${manifestDirectory}/${this.options.name}-pod.yaml`)
    return JSON.parse(readFileSync(path, 'utf8')) as ReturnType<StaticPod['live']>
  }

  /** From a local manifest and local files: the pair is the revision's. */
  async installFromFiles(revision: number, pair: Pair, env: Record<string, string> = {}): Promise<void> {
    const { name } = this.options
    const source = `/etc/kubernetes/sources/${name}-${revision}`
    const onDisk = this.node.space.onDisk(source)
    mkdirSync(join(onDisk, 'resources/secrets/serving'), { recursive: true })
    writeFileSync(join(onDisk, 'resources/secrets/serving/tls.crt'), pair.certificate)
    writeFileSync(join(onDisk, 'resources/secrets/serving/tls.key'), pair.key)
    writeFileSync(join(onDisk, `${name}-pod.yaml`), this.manifest(env))
    await this.demand([
      ...['install', `${source}/${name}-pod.yaml`, `--resources=${source}/resources`],
      ...[`--revision=${revision}`, `--resource-dir=${resources}`, `--pod-manifest-dir=${manifestDirectory}`],
      ...[`--pod-manifests-lock-file=${this.lock}`, `--node-name=${this.node.name}`],
    ])
  }

  /** Puts a revision into the API, as an operator does before it starts an installer. */
  async putRevision(revision: number, pair: Pair): Promise<void> {
    const { name } = this.options
    await this.putSecret(`serving-${revision}`, pair)
    await this.namespace.putConfigMap(`${name}-pod-${revision}`, { 'pod.yaml': this.manifest({}) })
  }

  async putSecret(name: string, pair: Pair): Promise<void> {
    await this.namespace.putSecret(name, { 'tls.crt': pair.certificate, 'tls.key': pair.key })
  }

  /** From the API, by flags alone. */
  async installFromApi(revision: number): Promise<void> {
    const { name, flags = [] } = this.options
    await this.demand([
      ...['install', `--revision=${revision}`, `--namespace=${this.namespace.name}`, `--pod=${name}-pod`],
      ...[`--configmaps=${name}-pod`, '--secrets=serving', `--resource-dir=${resources}`],
      ...[`--pod-manifest-dir=${manifestDirectory}`, `--pod-manifests-lock-file=${this.lock}`],
      ...[`--kubeconfig=${this.cluster.adminKubeconfig}`, `--node-name=${this.node.name}`, ...flags],
    ])
  }

  /** `holdfast monitor` of a revision that was just installed. `timeout` is a Go duration. */
  monitor(revision: number, timeout: string): Promise<Ended> {
    return holdfast(this.node.space, [
      ...['monitor', '--ready-for=3s', `--revision=${revision}`, `--target-name=${this.options.name}`],
      ...[`--resource-dir=${resources}`, `--manifests-dir=${manifestDirectory}`],
      ...[`--installer-lock-file=${this.lock}`, `--fallback-timeout-duration=${timeout}`],
      ...[`--ready-url=http://127.0.0.1:${this.port}/readyz`, ...this.node.kubelet.probeFlags()],
    ])
  }

  /** Waits until the container that answers is of this revision, and has read the pair with this number. */
  runs(revision: number, serial = revision): Promise<Report> {
    return until(
      `${this.options.name}: revision ${revision} runs, and reads pair ${serial}`,
      async () => {
        const report = await this.ask()
        if (report.revision === String(revision) && report.findings?.newest === serial) return report
        throw new Error(JSON.stringify(report))
      },
      patience,
    )
  }

  ask(): Promise<Report> {
    return askWorkload(this.port)
  }

  private async demand(args: readonly string[]): Promise<void> {
    const { code, stderr } = await holdfast(this.node.space, args)
    if (code !== 0) throw new Error(`holdfast ${args.join(' ')}: exit code ${code}: ${stderr}`)
  }

  private manifest(env: Record<string, string>): string {
    const { name, reads } = this.options
    return staticPodText({ name, port: this.port, reads, below: 'secrets/serving', env })
  }
}

export interface StaticPodText {
  readonly name: string
  readonly port: number
  /** The directory of the host that it mounts; the pair is in the one `below` it. */
  readonly reads: string
  readonly below: string
  readonly env?: Record<string, string>
}

/**
 * A manifest with the word REVISION where a revision's number goes. The container serves its revision and the files that it reads, and is
 * ready unless its environment says READY=never. No variable's name may hold that word: every occurrence is substituted.
 */
export function staticPodText({ name, port, reads, below, env = {} }: StaticPodText): string {
  const variables = Object.entries({ SAYS: 'REVISION', ...env })
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'kube-system', labels: { revision: 'REVISION' } },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name,
          image: workloadImage,
          imagePullPolicy: 'Never',
          args: ['serve', String(port), `/read/${below}`],
          env: variables.map(([name, value]) => ({ name, value })),
          volumeMounts: [{ name: 'read', mountPath: '/read', readOnly: true }],
        },
      ],
      volumes: [{ name: 'read', hostPath: { path: reads, type: 'Directory' } }],
    },
  })
}
