/** Waits until each selected node has an object on its disk, by the nodes' reports. See judge.ts for what counts. */
import { sleep } from '../deadline.js'
import { messageOf } from '../errors.js'
import type { ApiClient } from '../kubernetes/connection/client.js'
import { field } from '../kubernetes/reads/api-error.js'
import { resourceVersionOf, uidOf } from '../kubernetes/reads/observed-version.js'
import { metadataOnly } from '../kubernetes/reads/requests.js'
import type { Log } from '../log.js'
import type { ObjectKind } from '../objects/types.js'
import { follow, readPages, type FollowOptions } from './follow.js'
import { judgeNode, type FleetNode, type FleetReport, type NodeVerdict, type WantedObject } from './judge.js'
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
  /** The API server has answered for each collection. */
  readonly isAnswered: boolean
  readonly nodes: readonly (NodeVerdict & { readonly node: string })[]
}

/** Between two looks at how old the reports are, in milliseconds. */
const silenceLook = 10_000

/** Milliseconds from a list that was no end of the wait to the next one. */
const confirmPause = 2_000

/** @throws FollowRefused where the API server refuses a read */
export async function waitForObject(api: Pick<ApiClient, 'get' | 'stream'>, options: WaitOptions): Promise<WaitResult> {
  const wait = new Wait(options)
  const ending = new AbortController()
  const { signal } = ending
  const stop = (): void => ending.abort()
  options.signal.addEventListener('abort', stop)
  const looks = setInterval(() => wait.look(), silenceLook)
  const followed = wait
    .sources()
    .map(({ path, query, accept, to }) =>
      follow(api, to, { path, query, ...(accept && { accept }), signal, log: options.log }),
    )
  let isTroubled = false
  /** undefined: the API server was away, had forgotten the list's version, or had just started and denied it. */
  const confirmed = (): Promise<WaitResult | undefined> =>
    confirm(api, wait, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      options.log[isTroubled ? 'debug' : 'warn']({}, `the last reads fail, and are made again: ${messageOf(error)}`)
      isTroubled = true
      return undefined
    })
  try {
    const aborted = whenAborted(options.signal)
    for (;;) {
      await Promise.race([wait.seemsOver(), aborted, ...followed])
      if (options.signal.aborted) return { ...wait.result(), ended: wait.isGone ? 'gone' : 'aborted' }
      const result = await Promise.race([confirmed(), ...followed])
      if (result !== undefined && result.ended !== 'aborted') return result
      // A stream lags, or the API server is away: each further list would cost it as much as this one.
      await Promise.race([sleep(confirmPause, { signal }), aborted, ...followed])
    }
  } catch (error) {
    // The time was over during the last read.
    if (options.signal.aborted) return { ...wait.result(), ended: 'aborted' }
    throw error
  } finally {
    stop()
    clearInterval(looks)
    options.signal.removeEventListener('abort', stop)
    await Promise.allSettled(followed)
  }
}

/**
 * Streams of three collections have no order among one another, and one may lag. So the end of the wait is judged anew, by one more list of
 * each, the reports last: a report that is there by then is of a Node, and of an object, that was there before it.
 */
async function confirm(api: Pick<ApiClient, 'get'>, wait: Wait, signal: AbortSignal): Promise<WaitResult> {
  const fresh = wait.anew()
  for (const { path, query, accept, to } of fresh.sources()) {
    const { date } = await readPages(api, { path, query, ...(accept && { accept }), signal }, to.put)
    to.complete(date)
  }
  return fresh.result()
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
  #end: () => void = () => undefined
  #isObjectSeen = false
  isGone = false
  readonly #nodes = new Map<string, FleetNode>()
  readonly #reports = new Map<string, FleetReport>()
  /** Collections of which no whole list has come yet. */
  readonly #missing = new Set(['object', 'nodes', 'reports'])
  /** From performance.now(), which no setting of a clock moves, to the server's clock, in milliseconds. */
  #offset = performance.timeOrigin
  #isLooking = false
  #wanted: WantedObject | undefined

  constructor(
    private readonly options: WaitOptions,
    wanted?: WantedObject,
  ) {
    this.#wanted = wanted
  }

  /** The same wait, that knows the object alone. */
  anew(): Wait {
    return new Wait({ ...this.options, progress: () => undefined }, this.#wanted)
  }

  /** Resolves when each node seems to have it, or none is there to wait for, or the object is gone: as far as the streams have come. */
  seemsOver(): Promise<void> {
    return new Promise((resolve) => {
      this.#end = resolve
      this.look()
    })
  }

  sources(): FollowedSource[] {
    const { kind, namespace, name, nodes } = this.options
    const resource = kind === 'Secret' ? 'secrets' : 'configmaps'
    const complete = (which: string) => (date: number | undefined) => {
      if (date !== undefined) this.#offset = date - performance.now()
      this.#missing.delete(which)
      if (which === 'object' && !this.#isObjectSeen) this.#gone()
      this.look()
    }
    return [
      {
        path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}`,
        query: { fieldSelector: `metadata.name=${name}` },
        accept: metadataOnly,
        to: {
          put: (object) => this.#observe(object),
          remove: (removed) => {
            if (removed === name) this.#gone()
          },
          complete: complete('object'),
        },
      },
      {
        path: '/api/v1/nodes',
        query: { labelSelector: nodes },
        to: {
          put: (object) => this.#put(this.#nodes, object, nodeOf(object)),
          remove: (node) => this.#remove(this.#nodes, node),
          complete: complete('nodes'),
        },
      },
      {
        path: reportsPath,
        to: {
          put: (object) => this.#put(this.#reports, object, reportFor(object, { kind, namespace, name })),
          remove: (node) => this.#remove(this.#reports, node),
          complete: complete('reports'),
        },
      },
    ]
  }

  /** `item`: undefined for an object that says nothing, as a report without a status. */
  #put<Item>(to: Map<string, Item>, object: unknown, item: Item | undefined): void {
    const name = field(field(object, 'metadata'), 'name')
    if (typeof name !== 'string') return
    if (item === undefined) to.delete(name)
    else to.set(name, item)
    this.look()
  }

  #remove(from: Map<string, unknown>, name: string): void {
    from.delete(name)
    this.look()
  }

  #observe(object: unknown): void {
    const { kind, namespace, name, resourceVersion } = this.options
    // A proxy may drop the fieldSelector.
    if (field(field(object, 'metadata'), 'name') !== name) return
    const [uid, version] = [uidOf(object), resourceVersionOf(object)]
    if (uid === undefined || version === undefined) return
    this.#isObjectSeen = true
    if (this.#wanted === undefined) {
      this.#wanted = { kind, namespace, name, uid, resourceVersion: resourceVersion ?? version }
    } else if (this.#wanted.uid !== uid) this.#gone()
    this.look()
  }

  #gone(): void {
    this.isGone = true
    this.#end()
  }

  /** Looks once, after all that has come together. */
  look(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    setImmediate(() => {
      this.#isLooking = false
      if (this.isGone) this.#end()
      if (this.#missing.size > 0) return
      const verdicts = this.#verdicts()
      const done = verdicts.filter(({ obstacle }) => obstacle === undefined).length
      this.options.progress({ done, nodes: verdicts.length })
      if (done === verdicts.length) this.#end()
    })
  }

  #verdicts(): WaitResult['nodes'] {
    const wanted = this.#wanted
    if (wanted === undefined) return []
    const { ignoreSilent, reportedOnly } = this.options
    const now = performance.now() + this.#offset
    return [...this.#nodes.values()]
      .filter(({ name }) => !reportedOnly || this.#reports.has(name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((node) => ({
        node: node.name,
        ...judgeNode(node, this.#reports.get(node.name), wanted, { now, ignoreSilent }),
      }))
  }

  result(): WaitResult {
    const nodes = this.#verdicts()
    const [wanted, isAnswered] = [this.#wanted, this.#missing.size === 0]
    if (this.isGone) return { wanted, ended: 'gone', isAnswered, nodes }
    if (!isAnswered || nodes.some(({ obstacle }) => obstacle !== undefined)) {
      return { wanted, ended: 'aborted', isAnswered, nodes }
    }
    return { wanted, ended: nodes.length === 0 ? 'no-nodes' : 'done', isAnswered, nodes }
  }
}
