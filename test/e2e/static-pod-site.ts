/** Where static pods are installed: a cluster with one node, and sites with a revision each. */
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run, type Ended } from '../static-pods/command.js'
import { podText } from '../static-pods/pods.js'
import { kubernetesVersion } from './assets.js'
import { Cluster } from './cluster.js'
import { workingDirectory } from './guard.js'
import type { Namespace } from './namespace.js'

export const canary = 'CANARY-77aa'
export const nodeName = 'node-1.example'

/** A cluster with a node, whose kubelet is a current one. */
export async function clusterWithNode(t: Test): Promise<Cluster> {
  const cluster = await Cluster.start()
  t.teardown(() => cluster.stop())
  await cluster.api.admin.demand('POST', '/api/v1/nodes', { metadata: { name: nodeName } })
  await cluster.api.admin.demand(
    'PATCH',
    `/api/v1/nodes/${nodeName}/status`,
    { status: { nodeInfo: { kubeletVersion: kubernetesVersion } } },
    { 'content-type': 'application/merge-patch+json' },
  )
  return cluster
}

/** A namespace with one revision, the flags that install it, and where they put it. */
export class Site {
  readonly root = mkdtempSync(join(workingDirectory, 'site-'))
  readonly resources = join(this.root, 'static-pod-resources')
  readonly manifests = join(this.root, 'manifests')
  readonly certificates = join(this.resources, 'web-certs')

  private constructor(
    private readonly cluster: Cluster,
    readonly namespace: Namespace,
  ) {}

  static async create(cluster: Cluster, revision = 6): Promise<Site> {
    const site = new Site(cluster, await cluster.namespace())
    await site.putRevision(revision)
    const { namespace } = site
    await namespace.putSecret('serving', { 'tls.crt': 'crt', 'tls.key': canary })
    await namespace.putConfigMap('trust', { 'ca.crt': 'ca' })
    return site
  }

  async putRevision(revision: number): Promise<void> {
    const { namespace } = this
    await namespace.putConfigMap(`web-pod-${revision}`, {
      'pod.yaml': podText({ annotations: { at: 'NODE_NAME' } }),
      'watch-pod.yaml': podText({ name: 'watch' }),
      version: 'not a manifest',
    })
    await namespace.putConfigMap(
      `config-${revision}`,
      { 'config.yaml': 'REVISION NODE_NAME NODE_ENVVAR_NAME', 'run.sh': 'x' },
      { binary: Buffer.of(255, 0, 254).toString('base64') },
    )
    await namespace.putSecret(`client-${revision}`, { 'tls.crt': 'crt', 'tls.key': canary, 'run.sh': 'x' })
  }

  flags(revision = 6): string[] {
    return [
      ...['install', '-v=4', `--revision=${revision}`, `--namespace=${this.namespace.name}`, '--pod=web-pod'],
      ...[`--resource-dir=${this.resources}`, `--pod-manifest-dir=${this.manifests}`],
      ...['--configmaps=web-pod', '--configmaps=config', '--optional-configmaps=absent,absent-too'],
      ...['--secrets=client', '--optional-secrets=absent', `--cert-dir=${this.certificates}`],
      ...['--cert-secrets=serving', '--optional-cert-secrets=absent', '--cert-configmaps=trust'],
      ...['--optional-cert-configmaps=absent', `--pod-manifests-lock-file=${join(this.root, 'lock')}`],
      '--timeout-duration=1m30s',
    ]
  }

  /** With the administrator's kubeconfig, unless another is given. */
  install(revision = 6, more: readonly string[] = [], environment: Record<string, string> = {}): Promise<Ended> {
    return run([...this.flags(revision), `--kubeconfig=${this.cluster.adminKubeconfig}`, ...more], {
      NODE_NAME: nodeName,
      ...environment,
    })
  }

  async events(): Promise<{ type: string; reason: string; note: string; regarding: { kind: string; name: string } }[]> {
    const { body } = await this.cluster.api.admin.call(
      'GET',
      `/apis/events.k8s.io/v1/namespaces/${this.namespace.name}/events`,
    )
    return (body as { items: [] }).items
  }

  live(): { metadata: { uid?: string; labels: { revision: string } } } {
    return JSON.parse(readFileSync(join(this.manifests, 'web-pod.yaml'), 'utf8')) as ReturnType<Site['live']>
  }

  /** An installer pod of this node, with a container that has ended or not. */
  async putPod(name: string, ended: boolean, owner?: object): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace.name}/pods`
    await this.cluster.api.admin.demand('POST', path, {
      metadata: { name, labels: { app: 'installer' }, ...(owner && { ownerReferences: [owner] }) },
      spec: { nodeName, containers: [{ name: 'installer', image: 'x' }] },
    })
    await this.setEnded(name, ended)
  }

  async setEnded(name: string, ended: boolean): Promise<void> {
    const state = ended ? { terminated: { exitCode: 0 } } : { running: {} }
    const status = {
      containerStatuses: [{ name: 'installer', image: 'x', imageID: '', ready: false, restartCount: 0, state }],
    }
    await this.cluster.api.admin.demand(
      'PATCH',
      `/api/v1/namespaces/${this.namespace.name}/pods/${name}/status`,
      { status },
      { 'content-type': 'application/merge-patch+json' },
    )
  }
}

/** No value of an object is in what a command says. */
export function tellsNothing(t: Test, ...results: Ended[]): void {
  for (const { stdout, stderr } of results) t.notMatch(stdout + stderr, canary)
}
