/** One kube-apiserver on loopback, with RBAC, client certificates and service account tokens. */
import type { ChildProcess } from 'node:child_process'
import { execFile } from 'node:child_process'
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ApiClient } from './api-client.js'
import { findProgram } from './assets.js'
import { Authority, type KeyPair } from './authority.js'
import { endProcess, startProcess } from './guard.js'
import { freePort } from './ports.js'
import { until } from '../until.js'

export class ApiServer {
  private child: ChildProcess | undefined
  private extraArguments: readonly string[] = []

  private constructor(
    private readonly directory: string,
    private readonly etcdUrl: string,
    readonly port: number,
    readonly authority: Authority,
    private readonly serving: KeyPair,
    readonly adminPair: KeyPair,
    /** Of system:masters. */
    readonly admin: ApiClient,
  ) {}

  static async create(directory: string, etcdUrl: string): Promise<ApiServer> {
    const authority = await Authority.create(join(directory, 'authority'))
    const serving = await authority.server('kube-apiserver')
    const adminPair = await authority.client('admin', 'system:masters')
    const { stdout } = await promisify(execFile)('openssl', ['genrsa', '2048'])
    writeFileSync(join(directory, 'service-account.key'), stdout, { mode: 0o600 })
    const port = await freePort()
    const admin = new ApiClient(port, authority.certificate, adminPair)
    return new ApiServer(directory, etcdUrl, port, authority, serving, adminPair, admin)
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('the API server was not started')
    return this.child.pid
  }

  /** Resolves when it is ready; at once, if it runs. `extraArguments` hold until a start names others. */
  async start(extraArguments = this.extraArguments): Promise<void> {
    if (this.child && this.child.exitCode === null && this.child.signalCode === null) return
    this.extraArguments = extraArguments
    const log = openSync(join(this.directory, 'kube-apiserver.log'), 'a')
    const accounts = join(this.directory, 'service-account.key')
    this.child = startProcess(
      await findProgram('kube-apiserver'),
      [
        ...[`--etcd-servers=${this.etcdUrl}`, '--bind-address=127.0.0.1', `--secure-port=${this.port}`],
        ...[`--tls-cert-file=${this.serving.certificate}`, `--tls-private-key-file=${this.serving.key}`],
        ...[`--client-ca-file=${this.authority.certificate}`, '--authorization-mode=RBAC'],
        ...[`--service-account-key-file=${accounts}`, `--service-account-signing-key-file=${accounts}`],
        '--service-account-issuer=https://kubernetes.default.svc',
        // Unless the arguments ask for it: without a controller manager no program makes the service accounts that pods would need.
        ...(extraArguments.some((argument) => argument.includes('ServiceAccount'))
          ? []
          : ['--disable-admission-plugins=ServiceAccount']),
        '--service-cluster-ip-range=10.0.0.0/24',
        // Of kubelets it asks for logs, and to run commands. The names of the tests' nodes are in no DNS.
        ...[`--kubelet-certificate-authority=${this.authority.certificate}`],
        ...['--kubelet-preferred-address-types=InternalIP'],
        ...[`--kubelet-client-certificate=${this.adminPair.certificate}`],
        ...[`--kubelet-client-key=${this.adminPair.key}`],
        ...extraArguments,
      ],
      { stdio: ['ignore', log, log] },
    )
    await until('kube-apiserver is ready', async () => (await this.admin.call('GET', '/readyz')).status === 200)
  }

  async kill(): Promise<void> {
    this.admin.disconnect()
    if (this.child) await endProcess(this.child, 'SIGKILL')
  }
}
