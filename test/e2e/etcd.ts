/** One etcd member on loopback: started, killed, compacted, and taken back to a snapshot. */
import { type ChildProcess, execFile } from 'node:child_process'
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from './assets.js'
import { endProcess, startProcess } from './guard.js'
import { freePort } from './ports.js'
import { until } from '../until.js'

export class Etcd {
  private child: ChildProcess | undefined

  private constructor(
    private readonly directory: string,
    readonly url: string,
    private readonly peerUrl: string,
  ) {}

  static async create(directory: string): Promise<Etcd> {
    const [client, peer] = [await freePort(), await freePort()]
    return new Etcd(directory, `http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`)
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('etcd was not started')
    return this.child.pid
  }

  private get data(): string {
    return join(this.directory, 'etcd')
  }

  /** How this member is named to itself: the same when it starts and when it is restored. */
  private get membership(): string[] {
    return [
      ...['--name', 'e2e', '--data-dir', this.data],
      ...['--initial-cluster', `e2e=${this.peerUrl}`, '--initial-advertise-peer-urls', this.peerUrl],
    ]
  }

  /** Resolves when it serves. */
  async start(): Promise<void> {
    const log = openSync(join(this.directory, 'etcd.log'), 'a')
    const child = startProcess(
      await findProgram('etcd'),
      [
        ...this.membership,
        ...['--listen-client-urls', this.url, '--advertise-client-urls', this.url],
        ...['--listen-peer-urls', this.peerUrl, '--log-level', 'warn'],
        // The machine does not crash in these tests, which are not about etcd's own durability.
        '--unsafe-no-fsync',
      ],
      { stdio: ['ignore', log, log] },
    )
    this.child = child
    await until('etcd is healthy', async () => {
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new Error(`it has ended: ${readFileSync(join(this.directory, 'etcd.log'), 'utf8').slice(-1000)}`)
      }
      return (await fetch(`${this.url}/health`)).ok
    })
  }

  async kill(): Promise<void> {
    if (this.child) await endProcess(this.child, 'SIGKILL')
  }

  /** The revision of the newest write. */
  async revision(): Promise<number> {
    const status = (await this.call('maintenance/status', {})) as { header: { revision: string } }
    return Number(status.header.revision)
  }

  /** Forgets the history up to now: a watch that begins at an older revision is answered with 410. */
  async compact(): Promise<void> {
    await this.call('kv/compaction', { revision: String(await this.revision()), physical: true })
  }

  /** Writes a snapshot of all it holds, as `etcdctl snapshot save` does. */
  async saveSnapshot(file: string): Promise<void> {
    const response = await this.post('maintenance/snapshot', {})
    const parts = (await response.text()).trim().split('\n')
    writeFileSync(
      file,
      Buffer.concat(
        parts.map((part) => {
          const { result } = JSON.parse(part) as { result: { blob?: string } }
          return Buffer.from(result.blob ?? '', 'base64')
        }),
      ),
    )
  }

  /** Puts the snapshot in place of the data, with `etcdutl snapshot restore`. Only while it is down. */
  async restoreSnapshot(file: string): Promise<void> {
    rmSync(this.data, { recursive: true })
    await promisify(execFile)(await findProgram('etcdutl'), ['snapshot', 'restore', file, ...this.membership])
  }

  private async call(path: string, body: object): Promise<unknown> {
    return (await this.post(path, body)).json()
  }

  /** etcd's JSON gateway: https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/ */
  private async post(path: string, body: object): Promise<Response> {
    const response = await fetch(`${this.url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`etcd ${path}: HTTP ${response.status}: ${await response.text()}`)
    return response
  }
}
