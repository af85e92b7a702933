/** A slow way to the API server: a network namespace whose link is shaped, loses packets, and ends at a relay that delays. */
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { type Socket, connect, createServer } from 'node:net'
import { promisify } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'

export interface LinkOptions {
  /** Kilobits a second, towards the namespace. */
  readonly rate: number
  /** Milliseconds for one way. */
  readonly delay?: number
  /** Of packets that arrive in the namespace, between 0 and 1. */
  readonly loss?: number
}

const run = (command: string): Buffer => execFileSync('/bin/sh', ['-c', command], { stdio: 'pipe' })

/** A bucket holds what a fast link sends within four milliseconds, between two looks of the kernel. */
function shaped(rate: number): string {
  const burst = Math.max(4_000, Math.ceil(rate / 2))
  return `tbf rate ${rate}kbit burst ${burst} limit ${Math.max(64_000, 2 * burst)}`
}

/** Links that this process has opened. */
let opened = 0

export class SlowLink {
  /** Bytes that were sent into the link. */
  bytes = 0

  private constructor(
    readonly url: string,
    private readonly name: string,
  ) {}

  /** What runs a command at the slow end. */
  get prefix(): readonly string[] {
    return ['ip', 'netns', 'exec', this.name]
  }

  /** Needs root. Gone when the test ends. */
  static async open(t: Test, target: number, { rate, delay = 0, loss = 0 }: LinkOptions): Promise<SlowLink> {
    const number = opened++
    const name = `hf${process.pid}-${number}`
    const [network, host] = [`10.231.${process.pid % 250}`, 4 * number]
    const [near, far] = [`${network}.${host + 1}`, `${network}.${host + 2}`]
    t.teardown(() => run(`ip link del ${name} 2>/dev/null; ip netns del ${name} 2>/dev/null; true`))
    run(`ip netns add ${name}; ip link add ${name} type veth peer name eth0 netns ${name}`)
    run(`ip addr add ${near}/30 dev ${name}; ip link set ${name} up; ip -n ${name} link set lo up`)
    run(`ip -n ${name} addr add ${far}/30 dev eth0; ip -n ${name} link set eth0 up`)
    // Without offloads a packet is what a network carries: not 64 KiB, of which a loss would take all.
    run(`ethtool -K ${name} tso off gso off gro off 2>/dev/null || ip link set ${name} gso_max_segs 1`)
    run(`tc qdisc add dev ${name} root ${shaped(rate)}`)
    if (loss > 0) {
      const chance = `-m statistic --mode random --probability ${loss}`
      run(`ip netns exec ${name} iptables -A INPUT -i eth0 ${chance} -j DROP`)
    }
    const server = createServer((socket) => link.relay(socket, target, delay))
    server.listen(0, near)
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as { port: number }
    const link = new SlowLink(`https://${near}:${port}`, name)
    return link
  }

  /** Another rate from now on, in kilobits a second. */
  slow(rate: number): void {
    run(`tc qdisc change dev ${this.name} root ${shaped(rate)}`)
  }

  /** GETs the path with curl at the slow end; answers how long that took, in milliseconds, and the bytes sent into the link for it. */
  async curl(path: string, pair: { certificate: string; key: string }): Promise<{ took: number; bytes: number }> {
    const before = this.bytes
    const started = performance.now()
    const [program = '', ...args] = this.prefix
    const identity = ['--cert', pair.certificate, '--key', pair.key]
    await promisify(execFile)(program, [...args, 'curl', '-fsSk', '-o', '/dev/null', ...identity, `${this.url}${path}`])
    return { took: performance.now() - started, bytes: this.bytes - before }
  }

  private relay(socket: Socket, target: number, delay: number): void {
    const onward = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on('error', () => other.destroy())
      one.once('close', () => other.destroy())
      one.on('data', (chunk: Buffer) => {
        if (other === socket) this.bytes += chunk.length
        void sleep(delay).then(() => {
          if (!other.destroyed && !other.write(chunk) && !one.isPaused()) {
            one.pause()
            other.once('drain', () => one.resume())
          }
        })
      })
    }
  }
}
