import { hostname } from 'node:os'
import { endsWithin, longestTimeout } from '../deadline.js'
import { isGone, readRecord } from '../durable/index.js'
import type { ReplaceResult } from '../durable/types.js'
import { inParallel } from '../parallel.js'
import { adviceFor, isSystemError } from '../errors.js'
import type { AgentOptions, InForce } from './agent-options.js'
import type { Departures } from './leaving/departures.js'
import type { FreshnessTracker } from './report/freshness-tracker.js'
import { startDirectory } from './detect-drift.js'
import { nextEnd, type DirectoryFacts, type DirectoryState, type DirectoryStates } from './directory-state.js'
import { beside, describeFileSystem, fileSystemsNow, onFileSystem } from './file-systems.js'
import { hookGroups, runHooksTogether } from './hook-runner.js'
import { stalledMeaning, type PassOutcome } from './outcome.js'
import { PendingRemovals } from './leaving/pending-removals.js'
import { isOtherAgent, OtherAgents } from './other-keeper.js'
import { Pacing } from './pacing.js'
import { causes, reconcile } from './reconcile.js'
import { recordHeldBack } from './record-versions.js'
import { RunningOperations } from './running-operations.js'
import { TargetWatch } from './watch-directories.js'
import { MountWatch } from './watch-mounts.js'
import {
  Workqueue,
  type Batch,
  type NewsTimes,
  type Pending,
  type QueueResult,
  type WorkqueueOptions,
} from './workqueue.js'

interface OperationsOptions extends Omit<AgentOptions, 'openSource'> {
  readonly states: DirectoryStates
  readonly inForce: Readonly<InForce>
  readonly departures: Pick<Departures, 'isOwed' | 'moved'>
  readonly freshness: Pick<FreshnessTracker, 'refresh'>
  /** Ends the agent: nothing begins any more, and what runs ends where every target is intact. */
  readonly signal: AbortSignal
}

/** Milliseconds that the start waits for comparisons with the disk. A hanging one goes on in the background. */
const startGrace = 2_000

/** Directories of one file system that are compared at a time at the start: each takes memory. */
const comparedAtATime = 4

/** Milliseconds after which the end of the agent reports an unfinished pass as hanging; a command has one to end in. */
const endGrace = 2_000

/** Milliseconds from a pass to the next look at a hold or pin that ended during it. */
const secondLook = 500

/** Milliseconds for the last words to the disks. */
const lastGrace = 1_000

/** Milliseconds that a comparison waits, at most, for the rest of a change. */
const comparisonWaits = 1_000

/** Milliseconds that the agent waits for it in all. */
const endLimit = 5_000

/** A key, and a group, of the queue of publications that belong to no directory. */
const turnKey = 'turn'

/** What runs for the agent's directories: comparisons and publications, those of one file system together, and hooks. */
export class Operations {
  readonly #options: OperationsOptions
  readonly #publications: Workqueue
  readonly #hooks: Workqueue
  readonly #pacing = new Pacing()
  readonly #removals: PendingRemovals
  readonly #running: RunningOperations
  /** Directories that have not been compared with their records yet. */
  readonly #comparing = new Set<DirectoryState>()
  #comparisons: Promise<unknown> = Promise.resolve()
  readonly #watch: TargetWatch
  readonly #mounts: MountWatch
  readonly #others: OtherAgents
  /** When a timed word of a directory ends: it is compared then. */
  readonly #ends = new Map<DirectoryState, NodeJS.Timeout>()
  /** Directories that a batch has published, until all of it is: hooks that several of them have run once, after all of them. */
  readonly #published = new Set<DirectoryState>()
  /** Each waits for a turn of the queue of publications. */
  #turns: (() => void)[] = []
  /** All that was in flight when the operations were stopped. */
  #passes: Promise<unknown> = Promise.resolve()

  constructor(options: OperationsOptions) {
    this.#options = options
    const { log, states, signal, inForce } = options
    this.#removals = new PendingRemovals(log, signal)
    this.#others = new OtherAgents(() => inForce.configuration.driftInterval)
    this.#watch = new TargetWatch((path) => this.#look(path), signal, log)
    this.#mounts = new MountWatch(
      () => [...states].map(({ path }) => path),
      (path) => {
        const state = states.byPath(path)
        if (state) this.publish(state, causes.driftCheck)
      },
      signal,
      log,
    )
    this.#running = new RunningOperations({
      timeout: () => inForce.configuration.operationTimeout,
      stalled: (state, milliseconds) => this.#stalled(state, milliseconds),
      lasting: options.changed,
      signal,
    })
    const failed = (error: unknown, batch: ReadonlyMap<string, unknown>) => {
      const message = isSystemError(error)
        ? `${error.message}; the agent retries it; ${adviceFor(error.code, 'read') ?? 'check the kernel log'}`
        : `an internal error of holdfast: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
      log.error({ reason: 'PublishFailed', operations: [...batch.keys()] }, message)
    }
    const common = { failed, waits: options.changed }
    this.#publications = new Workqueue({ ...common, ...this.#publishing() })
    this.#hooks = new Workqueue({
      ...common,
      newsFrom: (operation, { first }) => {
        const state = states.byHooksOperation(operation)
        return state === undefined ? first : this.#pacing.hooksFrom(state)
      },
      groups: () => hookGroups(states, fileSystemsNow()),
      run: (batch, group) => this.#runHooks(batch, group),
    })
  }

  #publishing(): Pick<WorkqueueOptions, 'newsFrom' | 'besideNews' | 'groups' | 'run'> {
    const { states } = this.#options
    return {
      newsFrom: (operation, times) => {
        const state = states.byOperation(operation)
        return state === undefined ? times.first : this.#pacing.publishFrom(state, times)
      },
      // A comparison publishes the newest known objects: beside news, these may be one half of a change.
      besideNews: (operation, times, reasons) => {
        const state = states.byOperation(operation)
        const compares = [...reasons].every((cause) => cause === causes.driftCheck)
        return state !== undefined && compares ? this.#wholeFrom(state, times) : -Infinity
      },
      groups: () => {
        const fileSystemOf = fileSystemsNow()
        return (operation) =>
          operation === turnKey ? turnKey : publicationGroup(states.byOperation(operation), fileSystemOf)
      },
      run: (batch, group) =>
        group === turnKey
          ? this.#turned()
          : onFileSystem(fileSystemOfGroup(group), () =>
              this.#running.run(this.#statesOf(batch), () => this.#reconcile(batch)),
            ),
    }
  }

  #runHooks(batch: Batch, group: string): Promise<Map<string, QueueResult>> {
    const { states, inForce, node } = this.#options
    const groupOf = hookGroups(states, fileSystemsNow())
    const together = [...states].filter((state) => {
      const { hooksOperation: operation, facts } = state
      if (batch.has(operation)) return true
      // A hook that failed is retried for all of its directories by the first of them.
      const isDue = this.#hooks.retries(operation) || this.#pacing.hooksFrom(state) <= performance.now()
      return isDue && hasHooks(facts) && groupOf(operation) === group
    })
    this.#pacing.hooksBegan(together)
    const options = { ...this.#options, node: node || hostname(), events: inForce.events }
    return runHooksTogether(together, options)
  }

  /** How long a directory's operation on the disk has been running, in seconds; 0: none is. */
  runningSeconds(state: DirectoryState): number {
    return this.#running.seconds(state)
  }

  /** What runs, is due, or waits for its next try. */
  pending(): Pending[] {
    return [...this.#publications.all(), ...this.#hooks.all()].filter(({ key }) => key !== turnKey)
  }

  /**
   * Resolves when the queue of publications has begun and ended a task. It proves that the queue begins due work. A hanging disk, which no restart of the
   * agent cures, delays it as little as it delays directories on other disks.
   */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#turns.push(resolve)
      this.#publications.add(turnKey, turnKey)
    })
  }

  #turned(): Promise<Map<string, QueueResult>> {
    for (const resolve of this.#turns.splice(0)) resolve()
    return Promise.resolve(new Map<string, QueueResult>())
  }

  /** Publishes what the source has for a directory, as soon as its file system is free. */
  publish(state: DirectoryState, cause: string): void {
    // Its record says which versions are too old to be published.
    if (!this.#comparing.has(state)) this.#publications.add(state.publishOperation, cause)
  }

  /** Publishes what the source has just reported of one of the directory's objects, as soon as its configuration lets that be. */
  publishNews(state: DirectoryState, object: string): void {
    if (!this.#comparing.has(state)) this.#publications.addNews(state.publishOperation, object)
  }

  /** Publishes what waits for its time: an operator asks for it. */
  hurry(state: DirectoryState): void {
    this.#publications.hurry(state.publishOperation)
  }

  /** A publication of the directory is due or runs. */
  isPending(state: DirectoryState): boolean {
    return this.#publications.pending(state.publishOperation)
  }

  /** Runs the pending hooks of the published content at once: an operator asks for it. */
  runHooks(state: DirectoryState): void {
    if (hasHooks(state.facts)) this.#hooks.add(state.hooksOperation, state.facts.record?.digest ?? '')
  }

  /** The agent keeps the directory no longer. */
  forget(state: DirectoryState): void {
    clearTimeout(this.#ends.get(state))
    this.#ends.delete(state)
    this.#watch.forget(state.path)
    this.#publications.forget(state.publishOperation)
    this.#hooks.forget(state.hooksOperation)
    this.#options.states.remove(state.path)
  }

  /**
   * Compares directories with their records, those of several file systems side by side. Resolves when all are, or when the rest
   * takes so long that it hangs: that goes on, and nothing is published to those directories before it has ended. `compared` is
   * called for each that is, unless it was dropped meanwhile.
   */
  async start(states: readonly DirectoryState[], compared: (state: DirectoryState) => void): Promise<void> {
    this.#mounts.note()
    const fileSystemOf = fileSystemsNow()
    const groups = new Map<string, DirectoryState[]>()
    for (const state of states) {
      this.#comparing.add(state)
      const fileSystem = fileSystemOf(state.path)
      groups.set(fileSystem, [...(groups.get(fileSystem) ?? []), state])
    }
    const compare = async (state: DirectoryState): Promise<void> => {
      if (this.#isStopped()) return
      await this.#onDisk(state, () => startDirectory(state, this.#options))
      this.#comparing.delete(state)
      if (this.#isStopped()) return
      this.#watch.follow(state.path)
      if (this.#options.states.byPath(state.path) !== state) return
      this.#awaitEnd(state)
      compared(state)
    }
    const comparing = Promise.all([...groups.values()].map((group) => inParallel(group, comparedAtATime, compare)))
    this.#comparisons = Promise.all([this.#comparisons, comparing])
    await endsWithin(comparing, startGrace)
  }

  /** Notices a mount over a directory at once, from the moment on at which the directory was first compared. */
  watchMounts(): void {
    this.#mounts.start()
  }

  /** Resolves once what runs has ended, after the signal. Reports what does not end in time. */
  async stop(): Promise<void> {
    for (const timer of this.#ends.values()) clearTimeout(timer)
    this.#passes = Promise.all([this.#publications.close(), this.#hooks.close(), this.#comparisons])
    if (!(await endsWithin(this.#passes, endGrace))) this.#reportHanging()
  }

  /** The last words to the disks that answer. Returns the directories whose disks do not, even now. */
  async finish(): Promise<string[]> {
    await endsWithin(this.#passes, endLimit - endGrace)
    const hanging = new Set(this.#running.directories())
    const states = [...this.#options.states].filter((state) => !hanging.has(state))
    const last = Promise.all(
      states.map((state) => this.#onDisk(state, () => recordHeldBack(state, this.#options.log, { urgent: true }))),
    ).then(() => this.#removals.sync())
    await endsWithin(last, lastGrace)
    return this.#running.directories().map(({ path }) => path)
  }

  #isStopped(): boolean {
    return this.#options.signal.aborted
  }

  #reportHanging(): void {
    const states = this.#running.directories()
    const places = new Set(states.map(({ path }) => describeFileSystem(path)))
    const directories = states.map(({ path }) => path)
    for (const place of places) {
      this.#options.log.warn(
        { reason: 'Stalled', directories: directories.filter((path) => describeFileSystem(path) === place) },
        `${place} does not answer: everything else has ended, and this is waited for`,
      )
    }
  }

  /**
   * Each publication changes the record and the directory, too: only a hold that came or went, a directory that has disappeared, and one
   * that another agent has taken over, are worth a pass. A pass without work would take the place of a pass that waits for its retry.
   */
  async #look(path: string): Promise<void> {
    const state = this.#options.states.byPath(path)
    if (state === undefined) return
    // The comparison reports an unreadable target.
    const known = state.facts.record?.hold ?? state.facts.record?.pin
    const said = await beside(path, () => readRecord(path)).catch(() => ({ hold: known, keeper: undefined }))
    const hold = said?.hold
    const { published, intact } = state.facts
    const isTaken = published?.status === 'True' && isOtherAgent(state.facts, said?.keeper, this.#options.identity())
    const hasGone = intact && (await beside(path, () => isGone(path)).catch(() => true))
    if (hold?.since !== known?.since || (hasGone && state.facts.intact) || isTaken)
      this.publish(state, causes.driftCheck)
  }

  /** Runs work on a directory's file system as an operation of it. */
  #onDisk<T>(state: DirectoryState, work: () => Promise<T>): Promise<T> {
    return beside(state.path, () => this.#running.run([state], work))
  }

  /** Neither the repair of drift nor the end of a hold waits for a long debounce. */
  #wholeFrom(state: DirectoryState, news: NewsTimes): number {
    return Math.min(this.#pacing.quietFrom(state, news), news.first + comparisonWaits)
  }

  #compareAgain(operation: string): boolean {
    const state = this.#options.states.byOperation(operation)
    const news = this.#publications.newsOf(operation)
    if (state === undefined || news === undefined) return false
    if (this.#wholeFrom(state, news) <= performance.now()) return false
    this.#publications.add(operation, causes.driftCheck)
    return true
  }

  async #reconcile(batch: Batch): Promise<Map<string, QueueResult | Promise<QueueResult>>> {
    const { log, metrics, states, inForce, identity, departures, signal } = this.#options
    const { source, events } = inForce
    if (source === undefined) return new Map()
    this.#removals.busy()
    try {
      const results = await reconcile(batch, {
        log,
        metrics,
        events,
        signal,
        lockTimeout: 0,
        agent: identity(),
        others: this.#others,
        isOwed: (path) => departures.isOwed(path),
        requireProven: () => inForce.configuration.requireProven,
        examining: (path, work) => {
          const state = states.byPath(path)
          return state === undefined ? work() : this.#running.pause(state, work)
        },
        source,
        state: (operation) => states.byOperation(operation),
        compareAgain: (operation) => this.#compareAgain(operation),
        drifted: (state) => this.#show(state),
        applied: (state, outcome) => this.#applied(state, outcome),
      })
      for (const [operation, result] of results) {
        const state = states.byOperation(operation)
        if (state && typeof result !== 'string') results.set(operation, this.#removing(state, result))
      }
      for (const state of this.#statesOf(batch)) this.#runHooksInTime(state)
      return results
    } finally {
      for (const state of this.#statesOf(batch)) this.#awaitEnd(state)
      this.#removals.idle()
    }
  }

  /** The pass has published, or a comparison has found another process's publication: its hooks run as soon as `hookInterval` allows. */
  #runHooksInTime(state: DirectoryState): void {
    const { facts, hooksOperation } = state
    const isNew = this.#published.delete(state)
    // Those that have failed wait for their next try.
    const isFound = facts.intact && !this.#hooks.expects(hooksOperation)
    if (hasHooks(facts) && (isNew || isFound)) this.#hooks.addNews(hooksOperation, facts.record?.digest ?? '')
  }

  /** The removal of what others filled goes on beside the passes over other directories. */
  async #removing(state: DirectoryState, removal: Promise<QueueResult>): Promise<QueueResult> {
    const result = await this.#running.run([state], () => removal)
    this.#removals.add(state.path)
    this.#removals.idle()
    if (this.#isStopped()) return result
    // A confirmation of this directory waited for the removal.
    this.#show(state)
    return result
  }

  /** What an operator said for a time ends then, and not with the next comparison. */
  #awaitEnd(state: DirectoryState): void {
    clearTimeout(this.#ends.get(state))
    this.#ends.delete(state)
    const end = nextEnd(state.facts)
    if (end === undefined || this.#isStopped()) return
    const compare = (): void => this.publish(state, causes.driftCheck)
    const wait = end - Date.now()
    this.#ends.set(state, setTimeout(compare, wait > 0 ? Math.min(wait, longestTimeout) : secondLook).unref())
  }

  #statesOf(batch: Batch): DirectoryState[] {
    return [...batch.keys()].map((key) => this.#options.states.byOperation(key)).filter((state) => state !== undefined)
  }

  #applied(state: DirectoryState, outcome: PassOutcome): void {
    const change = changeBy(outcome)
    if (outcome.kind === 'published') this.#watch.follow(state.path)
    if (outcome.kind === 'failed' || (change !== undefined && change !== 'unchanged')) this.#pacing.published(state)
    // A hook that has failed waits for its next try, however often the same content is confirmed meanwhile.
    if (change !== undefined && change !== 'unchanged') {
      this.#removals.add(state.path)
      this.#published.add(state)
    }
    const old = this.#options.states.following(state.path)
    if (old) this.publish(old, `publish ${state.path}`)
    if (outcome.kind === 'moving' && outcome.state === 'done') {
      this.forget(state)
      this.#options.departures.moved(state.path)
      this.#options.moved()
    }
    this.#show(state)
  }

  /** The condition Fresh follows what a pass has found, and the status shows both. */
  #show(state: DirectoryState): void {
    this.#options.freshness.refresh(state)
    this.#options.changed()
  }

  /** The configuration may have dropped this directory meanwhile. */
  #stalled(state: DirectoryState, milliseconds: number): void {
    const { path: directory, publishOperation: operation } = state
    const { states, log, inForce } = this.#options
    if (states.byPath(directory) !== state) return
    const meaning = stalledMeaning({ operation, directory, milliseconds, on: describeFileSystem(directory) })
    for (const { level, reason, message, fields } of meaning.lines) {
      log[level]({ reason, directory, ...fields }, message)
    }
    inForce.events.pass(meaning)
    if (meaning.condition) state.happened({ kind: 'judged', type: 'Published', condition: meaning.condition })
    this.#show(state)
  }
}

/** How the pass has changed what consumers see; undefined: it has published nothing. */
function changeBy(outcome: PassOutcome): ReplaceResult['outcome'] | undefined {
  if (outcome.kind === 'published') return outcome.change
  return outcome.kind === 'moving' ? outcome.result?.outcome : undefined
}

function hasHooks({ record }: DirectoryFacts): boolean {
  return (record?.pendingHooks ?? []).length > 0
}

/** One batch publishes the directories of a file system, and one each those with `beforePublish`: none waits for another's commands. */
function publicationGroup(state: DirectoryState | undefined, fileSystemOf: (path: string) => string): string {
  const fileSystem = fileSystemOf(state?.path ?? '/')
  return state === undefined || state.configuration.beforePublish.length === 0
    ? fileSystem
    : `${fileSystem} ${state.publishOperation}`
}

function fileSystemOfGroup(group: string): string {
  return group.split(' ', 1)[0] ?? ''
}
