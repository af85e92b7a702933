/** Some agents without disks, in a separate process: the source as the agent has it, and its cost for the API server. */
import { objectName } from '../src/message-text.js'
import { Credentials } from '../src/kubernetes/credentials/credentials.js'
import type { ApiObserver } from '../src/kubernetes/connection/client.js'
import { connect } from '../src/kubernetes/connection/connection.js'
import { KubernetesSource } from '../src/objects/kubernetes/source.js'
import type { SourceListener } from '../src/objects/types.js'

export interface AgentsOrder {
  readonly agents: number
  readonly kubeconfig: string
  readonly namespace: string
  readonly names: readonly string[]
  readonly watch: 'objects' | 'namespaces'
}

/** What all agents of the process have come to since the last `reset`. */
export interface AgentsState {
  /** Objects of agents that the API server has confirmed. */
  readonly confirmed: number
  readonly watches: number
  readonly requests: number
  readonly refused: number
}

class Counting implements SourceListener {
  readonly confirmedNow = new Set<string>()
  requests = 0
  refused = 0
  open = 0

  readonly api: ApiObserver = {
    requested: (_, status) => {
      this.requests += 1
      if (status === 429) this.refused += 1
    },
    throttled: () => undefined,
    watches: (change) => (this.open += change),
  }

  observed(): void {
    // Counted once it is confirmed.
  }

  confirmed(reference: Parameters<SourceListener['confirmed']>[0]): void {
    this.confirmedNow.add(objectName(reference))
  }

  watchRestarted(): void {
    // Its requests are counted.
  }
}

const counting: Counting[] = []

process.on('message', (message: AgentsOrder | 'reset') => {
  if (message === 'reset') {
    for (const one of counting) {
      one.confirmedNow.clear()
      one.requests = 0
      one.refused = 0
    }
    return
  }
  const { agents, kubeconfig, namespace, names, watch } = message
  for (let count = 0; count < agents; count++) {
    const listener = new Counting()
    counting.push(listener)
    const access = new Credentials({ kubeconfig, context: undefined, environment: {}, search: 'service-account' })
    const rate = { qps: 20, burst: 30 }
    const client = connect(access, { version: 'scale', rate, observer: listener.api })
    const source = new KubernetesSource(client, listener, { watch })
    source.follow(names.map((name) => ({ reference: { kind: 'Secret', namespace, name } })))
  }
})

setInterval(() => {
  const sum = (figure: (one: Counting) => number): number => counting.reduce((all, one) => all + figure(one), 0)
  const state: AgentsState = {
    confirmed: sum(({ confirmedNow }) => confirmedNow.size),
    watches: sum(({ open }) => open),
    requests: sum(({ requests }) => requests),
    refused: sum(({ refused }) => refused),
  }
  process.send?.(state)
}, 100)

process.on('disconnect', () => process.exit())
