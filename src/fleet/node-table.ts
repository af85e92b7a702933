/** The Nodes of a fleet with their reports, as far as the API server's answers have come: `wait` judges them, `status` sums them up. */
import type { ApiClient } from '../kubernetes/connection/client.js'
import { targetPath } from '../kubernetes/reads/requests.js'
import type { Log } from '../log.js'
import { FleetCollection, followAll, type Silence } from './collection.js'
import type { FleetNode } from './judge.js'
import { fleetNode } from './read-report.js'
import { reportsPath } from './types.js'

/** What helps where the API server refuses a collection, by the HTTP status. */
export const advice = {
  403: 'this user needs list and watch of it',
  404: 'the cluster has no definition of it: kubectl apply -k deploy/fleet; where it has a newer one, upgrade holdfast',
}

const nodesTarget = { resource: 'nodes', namespace: undefined, name: undefined, advice } as const
const reportsTarget = { ...nodesTarget, resource: 'nodepublications' } as const

interface NodeTableOptions<Report> {
  /** A label selector of Nodes. */
  readonly nodes: string
  /** What is kept of a report; undefined: nothing, as of one without a status. */
  readonly read: (report: unknown) => Report | undefined
  /** Is called after each answer. */
  readonly changed: () => void
  /** A collection that is read before the Nodes. */
  readonly first?: FleetCollection<unknown>
}

export class NodeTable<Report> {
  readonly nodes: FleetCollection<FleetNode>
  readonly reports: FleetCollection<Report>
  readonly #all: readonly FleetCollection<unknown>[]

  constructor(
    private readonly api: ApiClient,
    { nodes, read, changed, first }: NodeTableOptions<Report>,
  ) {
    this.nodes = new FleetCollection(api, {
      target: nodesTarget,
      path: targetPath(nodesTarget),
      selector: { labelSelector: nodes },
      read: fleetNode,
      changed,
    })
    this.reports = new FleetCollection(api, { target: reportsTarget, path: reportsPath, read, changed })
    // The reports last: one that comes after its Node is of a Node that is known.
    this.#all = [...(first ? [first] : []), this.nodes, this.reports]
  }

  /** The API server has answered for each collection. */
  get isWhole(): boolean {
    return this.#all.every(({ isWhole }) => isWhole)
  }

  /** The longest one. */
  get silence(): Silence | undefined {
    return this.#all
      .flatMap(({ silence }) => silence ?? [])
      .reduce((a: Silence | undefined, b) => (a !== undefined && a.since <= b.since ? a : b), undefined)
  }

  /** By the server's clock. */
  now(): Date {
    return this.reports.now()
  }

  /** Each Node, by its name. */
  rows(): { readonly node: FleetNode; readonly report: Report | undefined }[] {
    return [...this.nodes.items.values()]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((node) => ({ node, report: this.reports.items.get(node.name) }))
  }

  /** Reads each collection once, one after the other. @throws ApiError, ConnectionError, the signal's reason */
  async read(signal: AbortSignal): Promise<void> {
    for (const collection of this.#all) await collection.read(signal)
  }

  /** Follows all of them until the signal aborts. @throws ApiError: the API server refuses what was never read */
  follow(signal: AbortSignal, log: Log): Promise<void> {
    return followAll(this.api, this.#all, signal, log)
  }
}
