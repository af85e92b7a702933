/** How a fleet stands: sums, and each exception. It keeps a few words for each node, and no report. */
import type { ApiClient } from '../kubernetes/connection/client.js'
import { readPages } from './follow.js'
import { longestQuiet, type FleetNode, type Obstacle } from './judge.js'
import { factsOf, nodeOf, type ReportFacts } from './read-report.js'
import { isSameObject, reportsPath, type ObjectNamed, type ReportedDirectory, type ReportedState } from './types.js'

export interface OverviewOptions {
  /** A label selector of Nodes. */
  readonly nodes: string
  /** Only this directory of each node. */
  readonly directory?: string | undefined
  /** Only directories that have this object. */
  readonly object?: ObjectNamed | undefined
  readonly signal: AbortSignal
}

export interface Exception {
  readonly node: string
  /** Of one directory; absent: of the whole node. */
  readonly directory?: string
  readonly state:
    Exclude<ReportedState, 'Current'> | Extract<Obstacle, 'NoReport' | 'OtherNode' | 'OtherBoot' | 'Silent'>
  readonly reason?: string
  readonly message?: string
  /** RFC 3339. */
  readonly since?: string
}

export interface Group {
  readonly value: string
  readonly nodes: number
}

export interface Overview {
  readonly nodes: number
  readonly reports: number
  /** Of the directories that were asked for. */
  readonly directories: {
    readonly current: number
    readonly waiting: number
    readonly held: number
    readonly failed: number
  }
  /** The earliest end of a published certificate, and its node. */
  readonly expires?: { readonly node: string; readonly at: string }
  readonly exceptions: readonly Exception[]
  /** The most frequent first. */
  readonly agentVersions: readonly Group[]
  readonly configurations: readonly Group[]
  /** With `object`: the versions that directories have. */
  readonly versions?: readonly Group[]
}

/** @throws FollowRefused, ConnectionError, the signal's reason */
export async function overviewOf(api: Pick<ApiClient, 'get'>, options: OverviewOptions): Promise<Overview> {
  const { signal } = options
  const nodes = new Map<string, FleetNode>()
  await readPages(api, { path: '/api/v1/nodes', query: { labelSelector: options.nodes }, signal }, (object) => {
    const node = nodeOf(object)
    if (node) nodes.set(node.name, node)
  })
  const sums = new Sums(nodes, options)
  // A list takes a moment: a clock that is wrong by less than the longest quiet changes nothing.
  const { date } = await readPages(api, { path: reportsPath, signal }, (object) => {
    const facts = factsOf(object)
    if (facts && nodes.has(facts.name)) sums.add(facts)
  })
  return sums.overview(date ?? Date.now())
}

class Sums {
  readonly #directories = { current: 0, waiting: 0, held: 0, failed: 0 }
  readonly #exceptions: Exception[] = []
  readonly #agentVersions = new Map<string, number>()
  readonly #configurations = new Map<string, number>()
  readonly #versions = new Map<string, number>()
  /** When each report was taken, in milliseconds since the epoch. */
  readonly #takenAt = new Map<string, number>()
  #expires: Overview['expires']

  constructor(
    private readonly nodes: ReadonlyMap<string, FleetNode>,
    private readonly options: OverviewOptions,
  ) {}

  add(facts: ReportFacts): void {
    const { name, nodeUID, bootID, takenAt, agentVersion, configuration, summary } = facts
    const node = this.nodes.get(name)
    this.#takenAt.set(name, takenAt)
    if (node?.uid !== nodeUID) this.#exceptions.push({ node: name, state: 'OtherNode' })
    else if (node.bootID !== bootID) this.#exceptions.push({ node: name, state: 'OtherBoot' })
    increase(this.#agentVersions, agentVersion)
    increase(this.#configurations, configuration)
    const { expires } = summary
    if (expires !== undefined && (this.#expires === undefined || expires < this.#expires.at)) {
      this.#expires = { node: name, at: expires }
    }
    const chosen = facts.directories.filter((each) => this.#isChosen(each))
    for (const directory of chosen) this.#addDirectory(facts, directory)
  }

  #isChosen({ path, objects }: ReportedDirectory): boolean {
    const { directory, object } = this.options
    if (directory !== undefined && path !== directory) return false
    return object === undefined || objects.some((each) => isSameObject(each, object))
  }

  #addDirectory({ name, since }: ReportFacts, { path, state, reason, message, objects }: ReportedDirectory): void {
    const key = { Current: 'current', Waiting: 'waiting', Held: 'held', Failed: 'failed' } as const
    this.#directories[key[state]] += 1
    const { object } = this.options
    const version = object && objects.find((each) => isSameObject(each, object))?.resourceVersion
    if (version !== undefined) increase(this.#versions, version)
    if (state === 'Current') return
    this.#exceptions.push({
      node: name,
      directory: path,
      state,
      reason,
      ...(message !== undefined && { message }),
      ...(since !== '' && { since }),
    })
  }

  overview(now: number): Overview {
    const silent: Exception[] = []
    for (const name of this.nodes.keys()) {
      const takenAt = this.#takenAt.get(name)
      if (takenAt === undefined) silent.push({ node: name, state: 'NoReport' })
      else if (now - takenAt > longestQuiet)
        silent.push({ node: name, state: 'Silent', since: new Date(takenAt).toISOString() })
    }
    const exceptions = [...this.#exceptions, ...silent].sort((a, b) =>
      a.node === b.node ? compare(a.directory ?? '', b.directory ?? '') : compare(a.node, b.node),
    )
    return {
      nodes: this.nodes.size,
      reports: this.#takenAt.size,
      directories: this.#directories,
      ...(this.#expires && { expires: this.#expires }),
      exceptions,
      agentVersions: groups(this.#agentVersions),
      configurations: groups(this.#configurations),
      ...(this.options.object && { versions: groups(this.#versions) }),
    }
  }
}

const compare = (a: string, b: string): number => Number(a > b) - Number(a < b)

function increase(counts: Map<string, number>, value: string): void {
  counts.set(value, (counts.get(value) ?? 0) + 1)
}

function groups(counts: ReadonlyMap<string, number>): Group[] {
  return [...counts]
    .map(([value, nodes]) => ({ value, nodes }))
    .sort((a, b) => b.nodes - a.nodes || compare(a.value, b.value))
}
