/** Runs agents without disks in a separate process, with the real source, watches and report. An observed object counts as published. */
import { DirectoryState } from '../src/agent/directory-state.js'
import { reportSnapshot } from '../src/agent/report/node-report.js'
import { parseConfiguration } from '../src/config/parse.js'
import type { DirectoryConfiguration } from '../src/config/types.js'
import { NodeReporter } from '../src/fleet/reporter.js'
import { connect } from '../src/kubernetes/connection/connection.js'
import { Credentials } from '../src/kubernetes/credentials/credentials.js'
import { silent } from '../src/log.js'
import { objectName } from '../src/message-text.js'
import { KubernetesSource } from '../src/objects/kubernetes/source.js'
import { hasObject } from '../src/objects/same-state.js'
import type { ObjectReference, SourceListener } from '../src/objects/types.js'

export interface FleetOrder {
  readonly nodes: readonly { readonly name: string; readonly kubeconfig: string }[]
  /** Each directory's path ends with the name of its Secret. */
  readonly configuration: string
  readonly references: readonly ObjectReference[]
  readonly bootID: string
}

export interface FleetState {
  readonly confirmed: number
  readonly watches: number
  /** Those that were answered. */
  readonly requests: number
  /** Those that met no server. */
  readonly unanswered: number
  /** Answers 429. */
  readonly refused: number
  /** When an agent received the last change of the watched object, in milliseconds since the epoch. */
  readonly received: readonly number[]
}

class Agent implements SourceListener {
  readonly confirmedNow = new Set<string>()
  requests = 0
  unanswered = 0
  refused = 0
  watches = 0
  receivedAt: number | undefined
  readonly #states: readonly DirectoryState[]
  readonly #source: KubernetesSource
  readonly #reporter: NodeReporter

  constructor(
    { references, bootID }: FleetOrder,
    directories: readonly DirectoryConfiguration[],
    node: FleetOrder['nodes'][number],
  ) {
    this.#states = directories.map((directory) => new DirectoryState(directory))
    const { kubeconfig, name } = node
    const access = new Credentials({ kubeconfig, context: undefined, environment: {}, search: 'service-account' })
    const api = connect(access, {
      version: 'fleet',
      rate: { qps: 20, burst: 30 },
      observer: {
        requested: (_, status) => {
          if (status === undefined) this.unanswered += 1
          else this.requests += 1
          if (status === 429) this.refused += 1
        },
        throttled: () => undefined,
        watches: (change) => (this.watches += change),
      },
    })
    this.#source = new KubernetesSource(api, this, { watch: 'objects' })
    const latest = (reference: ObjectReference) => this.#source.latest(reference)
    const options = { version: 'bench', configuration: () => 'sha256:bench', states: this.#states }
    this.#reporter = new NodeReporter(api, {
      log: silent,
      node: name,
      agentID: `bench-${name}`,
      bootID,
      snapshot: () => reportSnapshot({ latest }, options, false),
    })
    this.#source.follow(references.map((reference) => ({ reference })))
  }

  observed(reference: ObjectReference): void {
    this.receivedAt = Date.now()
    const observed = this.#source.latest(reference)
    if (!observed || !hasObject(observed)) return
    const { kind, namespace, name } = reference
    const { uid, resourceVersion } = observed.object
    for (const state of this.#states) {
      if (!state.path.endsWith(`/${name}`)) continue
      const sequence = (state.facts.record?.sequence ?? 0) + 1
      const objects = [{ kind, namespace, name, uid, resourceVersion, paths: [] }]
      const found = { warnings: [], certificates: [], hooks: [], unproven: false }
      const outcome = {
        kind: 'published',
        change: 'replaced',
        digest: 'sha256:bench',
        sequence,
        objects,
        ...found,
      } as const
      state.happened({ kind: 'passed', outcome })
      const condition = { status: 'True', reason: 'Published', message: '' } as const
      state.happened({ kind: 'judged', type: 'Published', condition })
    }
    this.#reporter.changed()
  }

  confirmed(reference: ObjectReference): void {
    this.confirmedNow.add(objectName(reference))
  }

  watchRestarted(): void {
    // Its requests are counted.
  }
}

const agents: Agent[] = []

process.on('message', (message: FleetOrder | 'reset') => {
  if (message !== 'reset') {
    void parseConfiguration(message.configuration, 'bench.yaml').then(({ directories }) => {
      agents.push(...message.nodes.map((node) => new Agent(message, directories, node)))
    })
    return
  }
  for (const agent of agents) {
    agent.confirmedNow.clear()
    agent.receivedAt = undefined
    agent.requests = 0
    agent.unanswered = 0
    agent.refused = 0
  }
})

setInterval(() => {
  const sum = (figure: (one: Agent) => number): number => agents.reduce((all, one) => all + figure(one), 0)
  const state: FleetState = {
    confirmed: sum(({ confirmedNow }) => confirmedNow.size),
    watches: sum(({ watches }) => watches),
    requests: sum(({ requests }) => requests),
    unanswered: sum(({ unanswered }) => unanswered),
    refused: sum(({ refused }) => refused),
    received: agents.flatMap(({ receivedAt }) => receivedAt ?? []),
  }
  process.send?.(state)
}, 500)

process.on('disconnect', () => process.exit())
