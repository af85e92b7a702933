/** Waits until each selected node has an object on its disk, by the nodes' reports. See judge.ts for what counts. */
import { sleep } from '../deadline.js'
import { messageOf } from '../errors.js'
import type { ApiClient } from '../kubernetes/connection/client.js'
import { metadataName, resourceVersionOf, metadataUid } from '../kubernetes/reads/observed-version.js'
import { collectionPath, listQuery, metadataOnly, objectTarget } from '../kubernetes/reads/requests.js'
import type { Log } from '../log.js'
import type { ObjectKind, ObjectVersion } from '../objects/types.js'
import { FleetCollection } from './collection.js'
import { judgeNode, type FleetReport, type NodeVerdict, type WantedObject } from './judge.js'
import { advice, NodeTable } from './node-table.js'
import { reportFor } from './read-report.js'

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

/** @throws ApiError where the API server refuses a read */
export async function waitForObject(api: ApiClient, options: WaitOptions): Promise<WaitResult> {
  const wait = new Wait(api, options)
  const ending = new AbortController()
  const signal = AbortSignal.any([ending.signal, options.signal])
  const looks = setInterval(() => wait.look(), silenceLook)
  const followed = wait.fleet.follow(signal, options.log)
  let isTroubled = false
  /** undefined: the API server was away, had forgotten the list's version, or had just started and denied it. */
  const confirmed = (): Promise<WaitResult | undefined> =>
    confirm(wait, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      options.log[isTroubled ? 'debug' : 'warn']({}, `the last reads fail, and are made again: ${messageOf(error)}`)
      isTroubled = true
      return undefined
    })
  try {
    for (;;) {
      // It ends when the time is over, or with a refusal.
      await Promise.race([wait.seemsOver(), followed])
      if (options.signal.aborted) return { ...wait.result(), ended: wait.isGone ? 'gone' : 'aborted' }
      const result = await Promise.race([confirmed(), followed])
      if (result !== undefined && result.ended !== 'aborted') return result
      // A stream lags, or the API server is away: each further list would cost it as much as this one.
      await Promise.race([sleep(confirmPause, { signal }), followed])
    }
  } catch (error) {
    // The time was over during the last read.
    if (options.signal.aborted) return { ...wait.result(), ended: 'aborted' }
    throw error
  } finally {
    ending.abort()
    clearInterval(looks)
    await Promise.allSettled([followed])
  }
}

/**
 * Streams of three collections have no order among one another, and one may lag. So the end of the wait is judged anew, by one more list of
 * each, the reports last: a report that is there by then is of a Node, and of an object, that was there before it.
 */
async function confirm(wait: Wait, signal: AbortSignal): Promise<WaitResult> {
  const fresh = wait.anew()
  await fresh.fleet.read(signal)
  return fresh.result()
}

class Wait {
  readonly fleet: NodeTable<FleetReport>
  readonly #object: FleetCollection<ObjectVersion>
  #end: () => void = () => undefined
  #isLooking = false
  #wanted: WantedObject | undefined

  constructor(
    private readonly api: ApiClient,
    private readonly options: WaitOptions,
    wanted?: WantedObject,
  ) {
    this.#wanted = wanted
    const { kind, namespace, name, nodes } = options
    const reference = { kind, namespace, name }
    const changed = (): void => this.look()
    this.#object = new FleetCollection(api, {
      target: { ...objectTarget(reference), advice },
      path: collectionPath(reference),
      selector: listQuery(reference),
      accept: metadataOnly,
      // A proxy may drop the selector.
      read: (object) => (metadataName(object) === name ? versionOfObject(object) : undefined),
      changed,
    })
    const read = (report: unknown) => reportFor(report, reference)
    this.fleet = new NodeTable(api, { nodes, read, changed, first: this.#object })
  }

  /** The same wait, that knows the object alone. */
  anew(): Wait {
    return new Wait(this.api, { ...this.options, progress: () => undefined }, this.#wanted)
  }

  /** Resolves when each node seems to have it, or none is there to wait for, or the object is gone: as far as the streams have come. */
  seemsOver(): Promise<void> {
    return new Promise((resolve) => {
      this.#end = resolve
      this.look()
    })
  }

  /** The object was deleted, or another one has its name. */
  get isGone(): boolean {
    const found = this.#object.items.get(this.options.name)
    if (found === undefined) return this.#object.isWhole
    return found.uid !== this.wanted?.uid
  }

  get wanted(): WantedObject | undefined {
    const { kind, namespace, name, resourceVersion } = this.options
    const found = this.#object.items.get(name)
    if (found)
      this.#wanted ??= {
        kind,
        namespace,
        name,
        uid: found.uid,
        resourceVersion: resourceVersion ?? found.resourceVersion,
      }
    return this.#wanted
  }

  /** Looks once, after all that has come together. */
  look(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    setImmediate(() => {
      this.#isLooking = false
      if (this.isGone) this.#end()
      if (!this.fleet.isWhole) return
      const verdicts = this.#verdicts()
      const done = verdicts.filter(({ obstacle }) => obstacle === undefined).length
      this.options.progress({ done, nodes: verdicts.length })
      if (done === verdicts.length) this.#end()
    })
  }

  #verdicts(): WaitResult['nodes'] {
    const { wanted } = this
    if (wanted === undefined) return []
    const { ignoreSilent, reportedOnly } = this.options
    const now = this.fleet.now().getTime()
    return this.fleet
      .rows()
      .filter(({ report }) => !reportedOnly || report !== undefined)
      .map(({ node, report }) => ({ node: node.name, ...judgeNode(node, report, wanted, { now, ignoreSilent }) }))
  }

  result(): WaitResult {
    const nodes = this.#verdicts()
    const { wanted } = this
    const isAnswered = this.fleet.isWhole
    if (this.isGone) return { wanted, ended: 'gone', isAnswered, nodes }
    if (!isAnswered || nodes.some(({ obstacle }) => obstacle !== undefined)) {
      return { wanted, ended: 'aborted', isAnswered, nodes }
    }
    return { wanted, ended: nodes.length === 0 ? 'no-nodes' : 'done', isAnswered, nodes }
  }
}

function versionOfObject(object: unknown): ObjectVersion | undefined {
  const [uid, resourceVersion] = [metadataUid(object), resourceVersionOf(object)]
  return uid === undefined || resourceVersion === undefined ? undefined : { uid, resourceVersion }
}
