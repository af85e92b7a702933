/**
 * `npm run bench:scale`: what agents cost a real API server, with a watch for each object and with one for each namespace. It takes the
 * control plane of the end-to-end tests. docs/scale.md has the table, and what follows from it.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Cluster } from '../test/e2e/cluster.js'
import { Node } from '../test/e2e/node.js'
import { until } from '../test/until.js'
import type { AgentsOrder, AgentsState } from './scale-agents.js'

t.setTimeout(1_800_000)

/** Secrets in the namespace. */
const secrets = 5_000
/** Agents of one process at most. */
const together = 10
const patience = { within: 150_000, every: 50 }

type Watch = AgentsOrder['watch']

const runs: readonly { agents: number; objects: number; watch: Watch }[] = [
  ...(['objects', 'namespaces'] as const).flatMap((watch) =>
    [1, 10, 100].map((agents) => ({ agents, objects: 50, watch })),
  ),
  { agents: 4, objects: 500, watch: 'objects' },
  { agents: 4, objects: 500, watch: 'namespaces' },
]

/** Agents in processes, with their own figures. */
class Agents {
  readonly #processes: ChildProcess[] = []
  readonly #states = new Map<ChildProcess, AgentsState>()

  constructor(private readonly order: AgentsOrder) {
    const program = fileURLToPath(new URL('./scale-agents.js', import.meta.url))
    for (let left = order.agents; left > 0; left -= together) {
      const child = fork(program, { execArgv: ['--semi-space-growth-factor=1', '--optimize-for-size'] })
      child.on('message', (state: AgentsState) => this.#states.set(child, state))
      child.send({ ...order, agents: Math.min(left, together) })
      this.#processes.push(child)
    }
  }

  get state(): AgentsState {
    const states = [...this.#states.values()]
    const sum = (figure: keyof AgentsState): number => states.reduce((all, state) => all + state[figure], 0)
    return {
      confirmed: sum('confirmed'),
      watches: sum('watches'),
      requests: sum('requests'),
      refused: sum('refused'),
    }
  }

  /** Resolves when all objects are confirmed, and all watches are open. */
  async complete(): Promise<void> {
    const { agents, names, watch } = this.order
    const [objects, watches] = [agents * names.length, watch === 'objects' ? agents * names.length : agents]
    const isComplete = (): boolean => this.state.confirmed === objects && this.state.watches === watches
    await until(`${objects} objects are confirmed`, isComplete, patience)
  }

  reset(): void {
    this.#states.clear()
    for (const child of this.#processes) child.send('reset')
  }

  end(): void {
    for (const child of this.#processes) child.disconnect()
  }
}

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())
const namespace = await cluster.namespace()
const names = Array.from({ length: secrets }, (_, index) => `secret-${index}`)
const data = { 'tls.crt': 'c'.repeat(3000), 'tls.key': 'k'.repeat(1000) }
for (let at = 0; at < secrets; at += 20) {
  await Promise.all(names.slice(at, at + 20).map((name) => namespace.putSecret(name, data)))
}
await namespace.createAccount('agent', { all: true })
const kubeconfig = namespace.kubeconfig({ token: await namespace.token('agent') })

for (const { agents, objects, watch } of runs) {
  await t.test(`${agents} agents x ${objects} objects, ${watch}`, async (t) => {
    const before = anonymous(cluster.api.pid)
    const all = new Agents({ agents, kubeconfig, namespace: namespace.name, names: names.slice(0, objects), watch })
    t.teardown(() => all.end())
    const started = performance.now()
    await all.complete()
    const start = { seconds: (performance.now() - started) / 1000, ...all.state }
    await sleep(3_000)
    const grown = anonymous(cluster.api.pid) - before
    await cluster.api.kill()
    all.reset()
    await cluster.api.start()
    const back = performance.now()
    await all.complete()
    t.comment(
      JSON.stringify({
        watches: start.watches,
        seconds: start.seconds.toFixed(1),
        requests: start.requests,
        refused: start.refused,
        serverMiB: grown.toFixed(0),
        KiBForEach: ((1024 * grown) / start.watches).toFixed(0),
        restart: {
          seconds: ((performance.now() - back) / 1000).toFixed(1),
          requests: all.state.requests,
          refused: all.state.refused,
        },
      }),
    )
    t.equal(all.state.watches, start.watches)
  })
}

for (const watch of ['objects', 'namespaces'] as const) {
  await t.test(`memory of an agent with 50 of ${secrets} Secrets, ${watch}`, async (t) => {
    const node = await Node.start(t, namespace, {
      allowed: {},
      kubeconfig,
      ...(watch === 'namespaces' && { watch }),
      directories: [{ path: 'all', contents: names.slice(0, 50).map((secret) => ({ secret, into: secret })) }],
    })
    await node.agent.ready()
    await sleep(5_000)
    const found = anonymous(node.agent.pid)
    t.comment(`${found.toFixed(1)} MiB`)
    t.ok(found < 40)
  })
}

/** Mebibytes. */
function anonymous(pid: number): number {
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
