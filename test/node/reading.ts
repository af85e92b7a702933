/** Certificates that change in the cluster, and a pod that reads each of them on the node's disk. */
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Cluster } from '../e2e/cluster.js'
import { Namespace } from '../e2e/namespace.js'
import { freePort } from '../e2e/ports.js'
import { until } from '../until.js'
import type { ClusterPods } from './cluster-pods.js'
import type { TestNode } from './node.js'
import { askWorkload, makePairs, type Pair, type Report } from './workload.js'

/** The Secret of deploy/'s configurations, and where they publish it. */
const secret = 'node-serving-cert'
export const parent = '/etc/kubernetes/node-certs'
export const target = `${parent}/serving`

/** Where deploy/'s configurations serve health: of the machine's network, so that nothing else may listen there. */
export const health = 'http://127.0.0.1:10808'

/**
 * Waits until no other test's agent is there, nor may come while this test runs: two files have agents on this port, and either has none
 * for a while in its middle. @throws Error that names the port
 */
export async function healthPortFree(t: Test): Promise<void> {
  const turn = await until(
    `no other test has agents on ${health}`,
    () =>
      new Promise<Server>((resolve, reject) => {
        const server = createServer()
        server.once('error', reject)
        // Of Linux's abstract sockets: the name ends with its process.
        server.listen('\0holdfast-node-test-10808', () => resolve(server))
      }),
    { within: 900_000, every: 500 },
  )
  t.teardown(() => turn.close())
  await until(
    `nothing listens on ${health} but the agents of this test`,
    async () => {
      const error = await fetch(health).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      return error !== undefined
    },
    { within: 120_000, every: 500 },
  )
}

export class Rotation {
  private serial = 0

  private constructor(
    private readonly namespace: Namespace,
    private readonly pairs: readonly Pair[],
  ) {}

  /** `most`: how many there can be. */
  static async prepare(cluster: Cluster, node: TestNode, most: number): Promise<Rotation> {
    const namespace = new Namespace('holdfast', cluster.api, node.space.onDisk('/etc/kubernetes'))
    return new Rotation(namespace, await makePairs(node.workload, most))
  }

  /** Puts the next pair into the Secret; returns its serial number. */
  async next(): Promise<number> {
    const pair = this.pairs[this.serial]
    if (!pair) throw new Error(`only ${this.pairs.length} pairs were made`)
    await this.namespace.putSecret(secret, { 'tls.crt': pair.certificate, 'tls.key': pair.key })
    return ++this.serial
  }

  /** The serial number of the newest one. */
  get newest(): number {
    return this.serial
  }

  get pair(): Pair | undefined {
    return this.pairs[this.serial - 1]
  }
}

/** A pod that mounts the parent of the target, as docs advise consumers to. */
export class Reader {
  private constructor(private readonly port: number) {}

  static async create(pods: ClusterPods, node: TestNode): Promise<Reader> {
    const port = await freePort()
    await pods.createReader('reader', node.name, port, parent, join('serving/secrets', secret))
    return new Reader(port)
  }

  report(): Promise<Report> {
    return askWorkload(this.port)
  }

  /** Waits until it has read this pair. */
  reads(serial: number): Promise<Report> {
    return until(
      `the reader has read pair ${serial}`,
      async () => {
        const report = await this.report()
        if (report.findings?.newest === serial) return report
        throw new Error(JSON.stringify(report))
      },
      { within: 120_000, every: 10 },
    )
  }
}
