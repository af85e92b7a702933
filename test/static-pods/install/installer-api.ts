/** An API server that holds what an installation asks for, and commands that install from it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { json, startServer, type ApiServer, type Reply, type Seen } from '../../kubernetes/connection/api-server.js'
import { authority, serving } from '../../kubernetes/connection/connected.js'
import { base64, kubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'
import { run, type Ended } from '../command.js'
import { NodeDisk, podText } from '../pods.js'

/** The answer to a path; undefined leaves it to the objects. */
type Override = (seen: Seen, reply: Reply) => true | undefined

export class InstallerApi extends NodeDisk {
  /** Objects by path. */
  readonly objects = new Map<string, object>()
  readonly events: { type: string; reason: string; note: string; regarding: object }[] = []
  override: Override = () => undefined
  readonly kubeconfig: string

  private constructor(
    t: Test,
    readonly server: ApiServer,
  ) {
    super(t)
    this.kubeconfig = join(this.root, 'kubeconfig')
    const cluster = { server: server.url, 'certificate-authority-data': base64(authority.certificate) }
    writeFileSync(this.kubeconfig, kubeconfig(cluster, { token: 'a-token' }, 'demo'))
  }

  static async start(t: Test): Promise<InstallerApi> {
    const server = await startServer({ serving, handler: (seen, reply) => api.#answer(seen, reply) })
    t.teardown(() => server.close())
    const api = new InstallerApi(t, server)
    return api
  }

  /** The ConfigMap of a revision, and a Secret of it. */
  putRevision(revision: number, more: object = {}): void {
    this.putConfigMap(`web-pod-${revision}`, { 'pod.yaml': podText(), ...more })
    this.putSecret(`client-${revision}`, { 'tls.key': `key of ${revision}` })
  }

  putConfigMap(name: string, data: object, binaryData: Readonly<Record<string, string>> = {}): void {
    this.#put('configmaps', name, { data, binaryData })
  }

  putNode(name: string, kubeletVersion: string): void {
    this.objects.set(`/api/v1/nodes/${name}`, { metadata: { name }, status: { nodeInfo: { kubeletVersion } } })
  }

  /** Installer pods of the node `n1`, and whether they have ended. */
  putInstallers(pods: Readonly<Record<string, 'running' | 'ended'>>): void {
    const items = Object.entries(pods).map(([name, phase]) => ({
      metadata: { name, uid: `uid-${name}`, labels: { app: 'installer' } },
      spec: { nodeName: 'n1' },
      status: { containerStatuses: [{ state: phase === 'ended' ? { terminated: { exitCode: 0 } } : { running: {} } }] },
    }))
    this.objects.set('/api/v1/namespaces/demo/pods', { kind: 'PodList', metadata: { resourceVersion: '7' }, items })
  }

  /** Requests whose path ends so. */
  asked(end: string): number {
    return this.server.requests.filter(({ path }) => path.split('?', 1)[0]?.endsWith(end)).length
  }

  putSecret(name: string, data: Readonly<Record<string, string>>): void {
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')] as const)
    this.#put('secrets', name, { data: Object.fromEntries(encoded) })
  }

  #put(resource: string, name: string, body: object): void {
    this.objects.set(`/api/v1/namespaces/demo/${resource}/${name}`, {
      metadata: { name, namespace: 'demo', uid: `uid-${name}`, resourceVersion: '7' },
      ...body,
    })
  }

  install(revision: number, more: readonly string[] = [], environment: Record<string, string> = {}): Promise<Ended> {
    return run(this.args(revision, more), environment)
  }

  args(revision: number, more: readonly string[]): string[] {
    return [
      ...['install', `--revision=${revision}`, '--namespace=demo', '--pod=web-pod', '--configmaps=web-pod'],
      ...['--secrets=client', `--resource-dir=${this.resources}`, `--pod-manifest-dir=${this.manifests}`],
      ...[`--pod-manifests-lock-file=${this.lock}`, `--kubeconfig=${this.kubeconfig}`, '--node-name=n1'],
      ...more,
    ]
  }

  #answer(seen: Seen, reply: Reply): void {
    if (this.override(seen, reply) === true) return
    const path = seen.path.split('?', 1)[0] ?? ''
    if (seen.method === 'POST' && path.endsWith('/events')) {
      this.events.push(JSON.parse(seen.body) as (typeof this.events)[number])
      json(reply, 201, {})
      return
    }
    const object = this.objects.get(path)
    if (object) json(reply, 200, object)
    else notFound(seen, reply)
  }
}

/** As the API server answers for an object that does not exist. */
export function notFound({ path }: Pick<Seen, 'path'>, reply: Reply): void {
  const details = { name: path.split('?', 1)[0]?.split('/').at(-1) }
  json(reply, 404, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', details, code: 404 })
}

/** As a proxy before the API server answers for a path that it does not know. */
export function notFoundPage(reply: Reply): void {
  const response = reply as ServerResponse
  response.writeHead(404, { 'content-type': 'text/html' })
  response.end('<html><head><title>404 Not Found</title></head></html>')
}
