/**
 * Reports to the cluster what a node has on its disk: one object NodePublication for each node, owned by its Node. A caller may rely on this:
 * `changed` returns at once and throws nothing, and no answer of the API server holds the agent up. One request runs at a time, over the
 * connection that the watches have. A node on which nothing changes writes once an hour, so that a quiet node and a silent one differ.
 */
import { Backoff } from '../backoff.js'
import { messageOf } from '../errors.js'
import { realClock, type EventClock } from '../kubernetes/events/event-recorder.js'
import type { ApiClient, ApiResponse } from '../kubernetes/connection/client.js'
import { credentialsAdvice, field, isAbsent, statusMessage, unsentAdvice } from '../kubernetes/reads/api-error.js'
import { metadataUid } from '../kubernetes/reads/observed-version.js'
import { describeTarget, metadataOnly, nodeTarget, targetPath } from '../kubernetes/reads/requests.js'
import type { Log } from '../log.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import { objectName } from '../message-text.js'
import { isSameReport, reportOf, type ReportIdentity, type NodeSnapshot } from './report-status.js'
import { heartbeat, managerOf, reportApi, reportsPath, type ReportStatus } from './types.js'

/** Milliseconds. */
const requestTimeout = 10_000
/** Between two reports, at least. */
const shortestGap = 10_000
/** A change waits for a random part of it: an object that all nodes have changes on all at the same moment. */
const spread = 30_000
const backoff = { firstDelay: 10_000, longestDelay: 10 * 60_000 }
/** Until the next try after a refusal, a fifth earlier or later: an administrator may grant the right meanwhile. */
const refusalPause = 5 * 60_000
/** An API server that has just started refuses what it will grant once it has read its roles: for so long, a refusal may pass by itself. */
const rolesPatience = 2 * 60_000
/** Another agent that has reported nothing for so long does not report any more. */
const silence = 2 * heartbeat

export interface NodeReporterOptions {
  readonly log: Log
  /** The Node's name. */
  readonly node: string
  /** The agent's own random name. */
  readonly agentID: string
  /** The kernel's, /proc/sys/kernel/random/boot_id. */
  readonly bootID: string
  /** What the agent knows now; undefined: it has not compared each directory with the disk yet. */
  snapshot(): NodeSnapshot | undefined
  readonly clock?: EventClock
  /** In [0, 1); default Math.random. */
  readonly random?: () => number
}

/** The API server does not let this agent report; the message says why, and what to do. */
class ReportRefused extends Error {}

/** The request may succeed later. */
class Unanswered extends Error {
  constructor(
    message: string,
    readonly retryAfter = 0,
  ) {
    super(message)
  }
}

/** Nothing is said of it: it passes by itself, or becomes a ReportRefused. */
class NotGrantedYet extends Unanswered {}

/** What the agent reports under. */
interface Target {
  readonly identity: ReportIdentity
  /** Another agent reported before, and does so no more. */
  readonly takesOver: boolean
}

export class NodeReporter {
  readonly #clock: EventClock
  readonly #random: () => number
  readonly #backoff: Backoff
  /** undefined: the agent has not asked the API server for its Node and the last report, or has to ask again. */
  #target: Target | undefined
  /** The last report that the API server has. */
  #sent: ReportStatus | undefined
  /** Monotonic. */
  #sentAt = -Infinity
  #nextBeat = 0
  /** Monotonic; the next look at what the agent knows. */
  #due: number
  /** No change brings the next look forward to before this. */
  #notBefore = -Infinity
  /** A change has set the time of the next look. */
  #isChanged = true
  /** The first report of this process is there: it is no older than the one before it. */
  #isStarted = false
  /** Monotonic; when the API server began to answer that this agent has no right. */
  #forbiddenSince: number | undefined
  /** The message of the last refusal or failure, while it lasts. */
  #problem: string | undefined
  #closed = false
  #wake = new AbortController()
  readonly #abort = new AbortController()
  readonly #running: Promise<void>

  constructor(
    private readonly api: Pick<ApiClient, 'get' | 'send'>,
    private readonly options: NodeReporterOptions,
  ) {
    this.#clock = options.clock ?? realClock
    this.#random = options.random ?? Math.random
    this.#backoff = new Backoff(backoff, this.#random)
    this.#due = this.#now() + this.#random() * spread
    this.#running = this.#run()
  }

  /** What the agent knows may have changed. */
  changed(): void {
    if (this.#isChanged || this.#closed) return
    this.#isChanged = true
    const soonest = Math.max(this.#notBefore, this.#sentAt + shortestGap, this.#now() + this.#random() * spread)
    if (soonest >= this.#due) return
    this.#due = soonest
    this.#wake.abort()
  }

  /** An administrator may have granted the right by now: the next look comes soon. */
  retryRefused(): void {
    this.#notBefore = -Infinity
    this.#isChanged = false
    this.#target = undefined
    this.changed()
  }

  /** Sends nothing any more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#wake.abort()
    this.#abort.abort(new Error('the agent is ending'))
    await this.#running
  }

  async #run(): Promise<void> {
    for (;;) {
      this.#wake = new AbortController()
      if (this.#closed) return
      const wait = this.#due - this.#now()
      if (wait > 0) {
        await this.#clock.sleep(wait, this.#wake.signal)
        continue
      }
      this.#isChanged = false
      this.#due = Infinity
      const delay = await this.#look()
      // A change during the request did not know yet how long to wait.
      this.#due = Math.max(Math.min(this.#due, this.#now() + delay), this.#notBefore, this.#sentAt + shortestGap)
    }
  }

  /** Reports if there is something to say. @returns milliseconds until the next look, if nothing changes before */
  async #look(): Promise<number> {
    try {
      const snapshot = this.options.snapshot()
      if (snapshot === undefined) return spread
      const isBeat = this.#now() - this.#sentAt >= this.#nextBeat
      // Once an hour the agent asks anew whose report it is.
      if (isBeat) this.#target = undefined
      this.#target ??= await this.#meet()
      const { identity, takesOver } = this.#target
      const report = reportOf(snapshot, identity, this.#clock.now().wall, this.#sent)
      const left = this.#sentAt + this.#nextBeat - this.#now()
      if (left > 0 && this.#sent !== undefined && isSameReport(report, this.#sent)) return this.#succeeded(left)
      if (!this.#isStarted && isBehind(snapshot, this.#sent)) return spread
      await this.#send(report, takesOver)
      this.#target = { identity, takesOver: false }
      this.#isStarted = true
      this.#sent = report
      this.#sentAt = this.#now()
      this.#nextBeat = this.#beat()
      return this.#succeeded(this.#nextBeat)
    } catch (error) {
      return this.#closed ? Infinity : this.#failed(error)
    }
  }

  #succeeded(delay: number): number {
    this.#backoff.reset()
    if (this.#problem !== undefined)
      this.options.log.info({}, `the agent reports to the cluster again (npub ${this.options.node})`)
    this.#problem = undefined
    this.#forbiddenSince = undefined
    return delay
  }

  #failed(error: unknown): number {
    const { log } = this.options
    this.#target = undefined
    const message = messageOf(error)
    const isRefusal = error instanceof ReportRefused
    const delay = isRefusal
      ? refusalPause * (0.8 + 0.4 * this.#random())
      : Math.max(this.#backoff.next('away'), error instanceof Unanswered ? error.retryAfter : 0)
    this.#notBefore = this.#now() + delay
    if (error instanceof NotGrantedYet) return delay
    if (isRefusal && message !== this.#problem) {
      log.warn({ reason: 'ReportRefused' }, `this node does not report: ${message}; everything else works`)
    } else if (this.#problem === undefined) {
      log.warn({}, `the report of this node could not be sent: ${message}; the agent tries again`)
    }
    this.#problem = message
    return delay
  }

  /** This Node, and the report that it has. */
  async #meet(): Promise<Target> {
    const { node, agentID, bootID } = this.options
    const target = nodeTarget(node)
    const answer = await this.#get(targetPath(target))
    if (isAbsent(answer, node)) throw new ReportRefused(`there is no Node ${node} (is the node's name right?)`)
    const nodeUID = metadataUid(this.#body(answer, `get ${describeTarget(target)}`))
    if (nodeUID === undefined) throw new Unanswered(`Node ${node} has no uid`)
    const identity = { nodeUID, bootID, agentID }
    const found = await this.#get(this.#path)
    if (isAbsent(found, node)) {
      await this.#create(nodeUID)
      this.#sent = undefined
      return { identity, takesOver: false }
    }
    return { identity, takesOver: this.#takeUp(this.#body(found, `get ${reportApi.resource} ${node}`), identity) }
  }

  /** A report that is there already. @returns whether another agent made it @throws ReportRefused: it is another node's, or agent's */
  #takeUp(body: unknown, { nodeUID, bootID, agentID }: ReportIdentity): boolean {
    const { node } = this.options
    const owners = field(field(body, 'metadata'), 'ownerReferences')
    const isOwn = Array.isArray(owners) && owners.some((owner) => field(owner, 'uid') === nodeUID)
    if (!isOwn) {
      throw new ReportRefused(
        `NodePublication ${node} is not owned by this Node (uid ${nodeUID}): it is left from an earlier Node of that name, or made by hand; remove it with kubectl delete npub ${node}, then run holdfast reload on the node`,
      )
    }
    const status = field(body, 'status') as ReportStatus | undefined
    if (status === undefined) return false
    const age = this.#clock.now().wall.getTime() - new Date(status.observedAt).getTime()
    const isOther = status.agentID !== agentID
    // On one node both have the same clock. After a boot, an agent that goes on reporting does so again.
    if (isOther && status.bootID === bootID && Math.abs(age) < silence) {
      throw new ReportRefused(
        `another agent (${status.agentID}) reports for node ${node}: let one of the two have report: true, or run kubectl delete npub ${node} if the other one is gone for good`,
      )
    }
    if (!this.#isStarted && status.nodeUID === nodeUID && !isOther) {
      this.#sent = status
      this.#sentAt = this.#now() - Math.max(0, age)
      this.#nextBeat = this.#beat()
    }
    return isOther
  }

  #now(): number {
    return this.#clock.now().monotonic
  }

  #beat(): number {
    return heartbeat * (0.9 + 0.2 * this.#random())
  }

  async #create(nodeUID: string): Promise<void> {
    const { node } = this.options
    const owner = { apiVersion: 'v1', kind: 'Node', name: node, uid: nodeUID }
    const { apiVersion, kind } = reportApi
    const body = { apiVersion, kind, metadata: { name: node, ownerReferences: [owner] } }
    const answer = await this.api.send('POST', reportsPath, body, this.#request())
    // 409: an earlier request, whose answer was lost, has made it.
    if (answer.status !== 409) this.#body(answer, `create ${reportApi.resource} ${node}`)
  }

  async #send(status: ReportStatus, takesOver: boolean): Promise<void> {
    const { node } = this.options
    const { apiVersion, kind } = reportApi
    const answer = await this.api.send(
      'PATCH',
      `${this.#path}/status`,
      { apiVersion, kind, metadata: { name: node }, status },
      // The API server need not encode a report for the agent that has just sent it.
      {
        ...this.#request(),
        accept: metadataOnly.object,
        apply: { manager: managerOf(status.agentID), force: takesOver },
      },
    )
    const what = `patch ${reportApi.resource}/status ${node}`
    if (answer.status === 409) throw new Unanswered(`${what}: ${statusMessage(answer.body)}`)
    if (isAbsent(answer, node)) throw new Unanswered(`NodePublication ${node} was deleted`)
    this.#body(answer, what)
  }

  get #path(): string {
    return `${reportsPath}/${encodeURIComponent(this.options.node)}`
  }

  #request() {
    return { timeout: requestTimeout, signal: this.#abort.signal }
  }

  #get(path: string): Promise<ApiResponse> {
    return this.api.get(path, {}, this.#request())
  }

  #body(answer: ApiResponse, what: string): unknown {
    const { status, body, retryAfter = 0 } = answer
    if (status < 300) return body
    const message = statusMessage(body)
    const unsent = unsentAdvice(answer)
    const advice = status === 401 ? ` (${unsent ?? credentialsAdvice})` : ''
    const said = `${what}: HTTP ${status}${message && `: ${message}`}${advice}`
    // An older definition lacks a field: the API server says so as an internal error (structured-merge-diff, "not declared in schema").
    const isOlder = message.includes('not declared in schema')
    if (status === 403) {
      this.#forbiddenSince ??= this.#now()
      if (this.#now() - this.#forbiddenSince < rolesPatience) throw new NotGrantedYet(said)
    }
    if (!isOlder && (status === 401 || status === 409 || status === 429 || status >= 500)) {
      throw new Unanswered(said, Math.min(retryAfter, backoff.longestDelay))
    }
    throw new ReportRefused(`${said} (${unsent ?? (isOlder ? newDefinition : refusalAdvice(status, message))})`)
  }
}

const newDefinition =
  'the cluster needs the CustomResourceDefinition of this version: kubectl apply -k deploy/fleet; where it has a newer one, upgrade holdfast'

function refusalAdvice(status: number, message: string): string {
  if (status === 404 || status === 400) return newDefinition
  if (message.includes('ValidatingAdmissionPolicy'))
    return 'RBAC grants it, but a policy denies it: docs/fleet.md, "Set up", says which user may report which node'
  if (status === 403) return '"holdfast rbac --config FILE | kubectl apply -f -" grants what report: true needs'
  return 'deploy/fleet has the definition and the policy of this version'
}

/** A directory holds an older version than the last report said, and the source has not confirmed that this is the newest one. */
function isBehind({ directories }: NodeSnapshot, before: ReportStatus | undefined): boolean {
  if (before === undefined) return false
  return directories.some(({ path, objects, confirmed }) => {
    if (confirmed) return false
    const now = new Map(objects.map((object) => [objectName(object), object]))
    const known = before.directories.find((each) => each.path === path)?.objects ?? []
    return known.some((object) => {
      const current = now.get(objectName(object))
      return (
        current?.uid === object.uid &&
        (compareResourceVersions(current.resourceVersion, object.resourceVersion) ?? 0) < 0
      )
    })
  })
}
