/** A separate control plane for each test file: etcd and kube-apiserver in a directory, with kubectl beside them. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ApiServer } from './api-server.js'
import { findProgram } from './assets.js'
import { Etcd } from './etcd.js'
import { workingDirectory } from './guard.js'
import { writeKubeconfig } from './kubeconfig.js'
import { Namespace } from './namespace.js'

export class Cluster {
  private namespaces = 0

  private constructor(
    private readonly directory: string,
    readonly etcd: Etcd,
    readonly api: ApiServer,
    readonly adminKubeconfig: string,
  ) {}

  /** Starts both servers; resolves when the API server is ready. They end with `stop`, or else with this process. */
  static async start(apiServerArguments: readonly string[] = []): Promise<Cluster> {
    const directory = mkdtempSync(join(workingDirectory, 'cluster-'))
    const etcd = await Etcd.create(directory)
    const api = await ApiServer.create(directory, etcd.url)
    await etcd.start()
    await api.start(apiServerArguments)
    const adminKubeconfig = join(directory, 'admin.kubeconfig')
    writeKubeconfig(adminKubeconfig, {
      server: api.url,
      authority: api.authority.certificate,
      user: { 'client-certificate': api.adminPair.certificate, 'client-key': api.adminPair.key },
    })
    return new Cluster(directory, etcd, api, adminKubeconfig)
  }

  async stop(): Promise<void> {
    await this.api.kill()
    await this.etcd.kill()
  }

  /** Runs kubectl as the administrator, with `input` as its standard input; returns its standard output. */
  async kubectl(args: readonly string[], input = ''): Promise<string> {
    const running = promisify(execFile)(await findProgram('kubectl'), ['--kubeconfig', this.adminKubeconfig, ...args], {
      env: { HOME: this.directory },
    })
    running.child.stdin?.end(input)
    return (await running).stdout
  }

  /** A new namespace, so that the cases of a file do not see each other's objects. */
  async namespace(): Promise<Namespace> {
    const name = `case-${++this.namespaces}`
    await this.api.admin.demand('POST', '/api/v1/namespaces', { metadata: { name } })
    return new Namespace(name, this.api, this.directory)
  }

  /** etcd as it is now, written to a file. */
  async snapshotEtcd(): Promise<string> {
    const file = join(this.directory, `snapshot-${Date.now()}.db`)
    await this.etcd.saveSnapshot(file)
    return file
  }

  /** An operator's work after a disaster: both servers down, etcd restored from the backup, both up again. */
  async restoreEtcd(snapshot: string): Promise<void> {
    await this.stop()
    await this.etcd.restoreSnapshot(snapshot)
    await this.etcd.start()
    await this.api.start()
  }
}
