/** Waits until each selected node has an object on its disk, by the nodes' reports. See judge.ts for what counts. */
import type { ApiClient } from '../kubernetes/connection/client.js'
import { field } from '../kubernetes/reads/api-error.js'
import type { Log } from '../log.js'
import type { ObjectKind } from '../objects/types.js'
import { follow, type FollowOptions } from './follow.js'
import { judge, type FleetNode, type FleetReport, type Verdict, type WantedObject } from './judge.js'
import { nodeOf, reportFor } from './read-report.js'
import { reportsPath } from './types.js'

export interface WaitOptions {
  readonly kind: ObjectKind
  readonly namespace: string
  readonly name: string
  /** Default: the one at the start. */
  readonly resourceVersion?: string | undefined
  /** A label selector of Nodes. */
  readonly nodes: string
  /** Nodes without a report do not count. */
  readonly reportedOnly: boolean
  readonly ignoreSilent: boolean
  /** Ends the wait, as a timeout does. */
  readonly signal: AbortSignal
  readonly log: Log
  readonly progress: (counts: { readonly done: number; readonly nodes: number }) => void
}

export interface WaitResult {
  /** undefined: the object has gone. */
  readonly wanted: WantedObject | undefined
  /** Why the wait ended: each node has it; the signal came first; there is no node to wait for; the object was deleted or replaced. */
  readonly ended: 'done' | 'aborted' | 'no-nodes' | 'gone'
  readonly nodes: readonly (Verdict & { readonly node: string })[]
}

/** Between two looks at how old the reports are, in milliseconds. */
const silenceLook = 10_000

const metadataOnly = {
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  watch: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
}

/** @throws FollowRefused where the API server refuses a read */
export async function waitForObject(api: Pick<ApiClient, 'get' | 'stream'>, options: WaitOptions): Promise<WaitResult> {
  const wait = new Wait(options)
  const ending = new AbortController()
  const stop = (): void => ending.abort()
  options.signal.addEventListener('abort', stop)
  const looks = setInterval(() => wait.look(), silenceLook)
  try {
    const { signal } = ending
    const followed = wait
      .sources()
      .map(({ path, query, accept, to }) =>
        follow(api, to, { path, query, ...(accept && { accept }), signal, log: options.log }),
      )
    await Promise.race([wait.ended, whenAborted(options.signal), ...followed])
    stop()
    await Promise.allSettled(followed)
    return wait.result()
  } finally {
    stop()
    clearInterval(looks)
    options.signal.removeEventListener('abort', stop)
  }
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

interface FollowedSource extends Pick<FollowOptions, 'path' | 'query' | 'accept'> {
  readonly to: Parameters<typeof follow>[1]
}

class Wait {
  readonly ended: Promise<void>
  #end: () => void = () => undefined
  #wanted: WantedObject | undefined
  #isGone = false
  #isDone = false
  readonly #nodes = new Map<string, FleetNode>()
  readonly #reports = new Map<string, FleetReport>()
  /** Collections of which no whole list has come yet. */
  readonly #missing = new Set(['object', 'nodes', 'reports'])
  /** Milliseconds by which the server's clock is ahead. */
  #ahead = 0
  #isLooking = false

  constructor(private readonly options: WaitOptions) {
    this.ended = new Promise((resolve) => (this.#end = resolve))
  }

  sources(): FollowedSource[] {
    const { kind, namespace, name, nodes } = this.options
    const resource = kind === 'Secret' ? 'secrets' : 'configmaps'
    const complete = (which: string) => (date: number | undefined) => {
      if (date !== undefined) this.#ahead = date - Date.now()
      this.#missing.delete(which)
      if (which === 'object' && this.#wanted === undefined) this.#gone()
      this.look()
    }
    return [
      {
        path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}`,
        query: { fieldSelector: `metadata.name=${name}` },
        accept: metadataOnly,
        to: { put: (object) => this.#observe(object), remove: () => this.#gone(), complete: complete('object') },
      },
      {
        path: '/api/v1/nodes',
        query: { labelSelector: nodes },
        to: {
          put: (object) => this.#put(this.#nodes, nodeOf(object)),
          remove: (node) => this.#remove(this.#nodes, node),
          complete: complete('nodes'),
        },
      },
      {
        path: reportsPath,
        to: {
          put: (object) => this.#put(this.#reports, reportFor(object, { kind, namespace, name })),
          remove: (node) => this.#remove(this.#reports, node),
          complete: complete('reports'),
        },
      },
    ]
  }

  #put<Item extends { readonly name: string }>(to: Map<string, Item>, item: Item | undefined): void {
    if (item !== undefined) to.set(item.name, item)
    this.look()
  }

  #remove(from: Map<string, unknown>, name: string): void {
    from.delete(name)
    this.look()
  }

  #observe(object: unknown): void {
    const { kind, namespace, name, resourceVersion } = this.options
    const metadata = field(object, 'metadata')
    const [uid, version] = [field(metadata, 'uid'), field(metadata, 'resourceVersion')]
    if (typeof uid !== 'string' || typeof version !== 'string') return
    if (this.#wanted === undefined) {
      this.#wanted = { kind, namespace, name, uid, resourceVersion: resourceVersion ?? version }
    } else if (this.#wanted.uid !== uid) this.#gone()
    this.look()
  }

  #gone(): void {
    this.#isGone = true
    this.#end()
  }

  /** Looks once, after all that has come together. */
  look(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    setImmediate(() => {
      this.#isLooking = false
      if (this.#missing.size > 0) return
      const verdicts = this.#verdicts()
      const done = verdicts.filter(({ obstacle }) => obstacle === undefined).length
      this.options.progress({ done, nodes: verdicts.length })
      // A node that comes while the last one reports is waited for, too: so the answer is of one moment.
      if (verdicts.length === 0 || done === verdicts.length) {
        this.#isDone = verdicts.length > 0
        this.#end()
      }
    })
  }

  #verdicts(): WaitResult['nodes'] {
    const wanted = this.#wanted
    if (wanted === undefined) return []
    const { ignoreSilent, reportedOnly } = this.options
    const now = Date.now() + this.#ahead
    return [...this.#nodes.values()]
      .filter(({ name }) => !reportedOnly || this.#reports.has(name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((node) => ({ node: node.name, ...judge(node, this.#reports.get(node.name), wanted, { now, ignoreSilent }) }))
  }

  result(): WaitResult {
    const nodes = this.#verdicts()
    if (this.#isGone) return { wanted: this.#wanted, ended: 'gone', nodes }
    const isReady = this.#missing.size === 0
    if (isReady && nodes.length === 0) return { wanted: this.#wanted, ended: 'no-nodes', nodes }
    const isDone = this.#isDone && nodes.every(({ obstacle }) => obstacle === undefined)
    return { wanted: this.#wanted, ended: isDone ? 'done' : 'aborted', nodes }
  }
}
