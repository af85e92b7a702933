import type { AgentConfiguration, SourceConfiguration } from '../config/types.js'
import { endsWithin } from '../deadline.js'
import { inParallel } from '../durable/index.js'
import type { Log } from '../log.js'
import {
  describeReference,
  type ObjectReference,
  type ObservedState,
  type Source,
  type SourceListener,
  type UnknownState,
  type WatchRestartReason,
} from '../objects/types.js'
import { configurationChange } from './configuration-change.js'
import { desiredObjects } from './desired-content.js'
import { startDirectory } from './detect-drift.js'
import { DirectoryStates, type DirectoryState } from './directory-state.js'
import { beside, describeFileSystem, fileSystemsNow, onFileSystem } from './file-systems.js'
import { FreshnessTracker } from './freshness-tracker.js'
import { runHookBatch } from './hook-runner.js'
import { stalledMeaning, type Outcome } from './outcome.js'
import { PendingRemovals } from './pending-removals.js'
import { causes, reconcile } from './reconcile.js'
import { recordHeldBack } from './record-versions.js'
import { noEvents, openEvents, type AgentEvents } from './agent-events.js'
import type { Metrics } from './report-metrics.js'
import { RunningOperations } from './running-operations.js'
import { Workqueue, type Batch, type QueueResult } from './workqueue.js'

export type OpenSource = (configuration: SourceConfiguration, listener: SourceListener) => Promise<Source>

interface AgentOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly openSource: OpenSource
  /** This node's name in the cluster, for events; the empty string where nobody says. */
  readonly node: string
  /** Called when something that the status shows has changed. */
  readonly changed: () => void
}

/** Milliseconds that the start waits for comparisons with the disk. One that hangs goes on beside all else. */
const startGrace = 2_000

/** Directories of one file system that are compared at a time at the start: each takes memory. */
const comparedAtATime = 4

/** Milliseconds after which a pass that has not ended at the end of the agent is said to hang. */
const endGrace = 1_000

/** Milliseconds that the agent waits for it in all. */
const endLimit = 5_000

/**
 * Keeps directories as a source says. It starts once, takes new configurations, and stops once; what it knows of each directory is
 * in `states`.
 */
export class Agent {
  readonly states = new DirectoryStates()
  readonly #options: AgentOptions
  readonly #publications: Workqueue
  readonly #hooks: Workqueue
  readonly #abort = new AbortController()
  readonly #freshness: FreshnessTracker
  readonly #removals: PendingRemovals
  readonly #running: RunningOperations
  /** Directories that have not been compared with their records yet. */
  readonly #comparing = new Set<DirectoryState>()
  #configuration: AgentConfiguration
  #source: Source | undefined
  #events = noEvents
  #driftTimer: NodeJS.Timeout | undefined

  constructor(configuration: AgentConfiguration, options: AgentOptions) {
    this.#configuration = configuration
    this.#options = options
    this.#removals = new PendingRemovals(options.log)
    this.#running = new RunningOperations({
      timeout: () => this.#configuration.operationTimeout,
      stalled: (state, milliseconds) => this.#stalled(state, milliseconds),
    })
    this.#freshness = new FreshnessTracker({ ...options, states: this.states, source: () => this.#source })
    const failed = (error: unknown, batch: ReadonlyMap<string, unknown>) => {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      options.log.error(
        { reason: 'PublishFailed', operations: [...batch.keys()] },
        `an internal error of holdfast: ${message}`,
      )
    }
    this.#publications = new Workqueue({
      groups: () => {
        const fileSystemOf = fileSystemsNow()
        return (operation) => fileSystemOf(this.states.byOperation(operation)?.path ?? '/')
      },
      failed,
      run: (batch, fileSystem) =>
        onFileSystem(fileSystem, () => this.#running.run(this.#statesOf(batch), () => this.#reconcile(batch))),
    })
    this.#hooks = new Workqueue({
      groups: () => (operation) => operation,
      failed,
      run: (batch) => {
        const events = this.#events
        return runHookBatch(batch, this.states, { ...options, events, signal: this.#abort.signal })
      },
    })
    for (const directory of configuration.directories) this.states.add(directory)
  }

  get configuration(): AgentConfiguration {
    return this.#configuration
  }

  /** How long a directory's operation on the disk has been running, in seconds; 0: none is. */
  runningSeconds(state: DirectoryState): number {
    return this.#running.seconds(state)
  }

  /** The client certificate that the source uses. */
  clientCertificateNotAfter(): Date | undefined {
    return this.#source?.clientCertificateNotAfter()
  }

  /** Compares every directory with its record, then follows the source. Rejects where the source cannot be made at all. */
  async start(): Promise<void> {
    await this.#startDirectories([...this.states])
    const { source, events } = await this.#open(this.#configuration.source)
    this.#source = source
    this.#events = events
    this.#follow()
    for (const state of this.states) this.#due(state, causes.start)
    this.#compareRegularly()
  }

  /** Opens a source and what reports to its cluster, both or neither. */
  async #open(configuration: SourceConfiguration): Promise<{ source: Source; events: AgentEvents }> {
    const source = await this.#options.openSource(configuration, this.#listener())
    try {
      return { source, events: await openEvents(source, this.#options) }
    } catch (error) {
      await source.close()
      throw error
    }
  }

  #compareRegularly(): void {
    clearInterval(this.#driftTimer)
    this.#driftTimer = setInterval(() => this.compareAll(), this.#configuration.driftInterval)
  }

  /** Compares every directory with the disk, and repairs what differs; what waits for a change runs again. */
  compareAll(): void {
    for (const state of this.states) {
      this.#due(state, causes.driftCheck)
      if (state.intact) this.#dueHooks(state)
    }
  }

  /** Puts a new configuration in force. Rejects, with the old one in force, where its source cannot be made. */
  async reconfigure(configuration: AgentConfiguration): Promise<void> {
    const change = configurationChange(this.#configuration, configuration)
    const next = change.sourceChanged ? await this.#open(configuration.source) : undefined
    const { driftInterval, requireProven } = this.#configuration
    this.#configuration = configuration
    if (configuration.driftInterval !== driftInterval) this.#compareRegularly()
    for (const path of change.dropped) {
      const state = this.states.byPath(path)
      if (state) this.#drop(state)
    }
    for (const directory of change.changed) {
      const state = this.states.byPath(directory.path)
      if (state === undefined) continue
      state.configuration = directory
      this.#options.metrics.follow(
        directory.path,
        directory.afterPublish.map(({ name }) => name),
      )
      this.#due(state, causes.configuration)
      if (state.intact) this.#dueHooks(state)
    }
    // What is on the disk is as it was, but it may be good enough no more, or now.
    if (configuration.requireProven !== requireProven) {
      for (const state of this.states) this.#due(state, causes.configuration)
    }
    await this.#startDirectories(change.added.map((directory) => this.states.add(directory)))
    if (next) {
      const before = { source: this.#source, events: this.#events }
      this.#source = next.source
      this.#events = next.events
      this.#freshness.forgetSource()
      await before.events.close()
      await before.source?.close()
    }
    this.#events.reloaded()
    this.#follow()
    for (const { path } of change.added) {
      const state = this.states.byPath(path)
      if (state) this.#due(state, causes.configuration)
    }
    this.#options.changed()
  }

  /** Reports that a configuration was not put in force. */
  configurationRefused(message: string): void {
    this.#events.configurationInvalid(message)
  }

  /**
   * Finishes or aborts what is in flight, at a point where every target is intact. Answers the directories whose disks do not
   * answer: what they keep of this process, nobody can end.
   */
  async stop(): Promise<string[]> {
    clearInterval(this.#driftTimer)
    this.#freshness.close()
    this.#running.close()
    this.#abort.abort()
    const passes = Promise.all([this.#publications.close(), this.#hooks.close()])
    const inTime = await endsWithin(passes, endGrace)
    if (!inTime) this.#reportHanging()
    await this.#events.close()
    await this.#source?.close()
    if (!inTime) await endsWithin(passes, endLimit - endGrace)
    const hanging = new Set(this.#running.directories())
    const states = [...this.states].filter((state) => !hanging.has(state))
    const last = Promise.all(
      states.map((state) => this.#onDisk(state, () => recordHeldBack(state, this.#options.log, { urgent: true }))),
    ).then(() => this.#removals.sync())
    await endsWithin(last, endGrace)
    return this.#running.directories().map(({ path }) => path)
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

  /** Runs work on a directory's file system as an operation of it. */
  #onDisk<T>(state: DirectoryState, work: () => Promise<T>): Promise<T> {
    return beside(state.path, () => this.#running.run([state], work))
  }

  /**
   * Compares directories with their records, those of several file systems side by side. Resolves when all are, or when the rest
   * takes so long that it hangs: that goes on, and nothing is published to those directories before it has ended.
   */
  async #startDirectories(states: readonly DirectoryState[]): Promise<void> {
    const fileSystemOf = fileSystemsNow()
    const groups = new Map<string, DirectoryState[]>()
    for (const state of states) {
      this.#comparing.add(state)
      const fileSystem = fileSystemOf(state.path)
      groups.set(fileSystem, [...(groups.get(fileSystem) ?? []), state])
    }
    const comparisons = [...groups.values()].map((group) =>
      inParallel(group, comparedAtATime, (state) => this.#startDirectory(state)),
    )
    await endsWithin(Promise.all(comparisons), startGrace)
  }

  async #startDirectory(state: DirectoryState): Promise<void> {
    await this.#onDisk(state, () => startDirectory(state, this.#options))
    this.#comparing.delete(state)
    if (this.states.byPath(state.path) !== state || this.#abort.signal.aborted) return
    if (state.intact) this.#dueHooks(state)
    if (this.#source === undefined) return
    // The source learns the versions that are published before anything of it is.
    this.#follow()
    this.#due(state, causes.start)
    this.#options.changed()
  }

  #drop(state: DirectoryState): void {
    const { path } = state
    this.#publications.forget(state.publishOperation)
    this.#hooks.forget(state.hooksOperation)
    this.states.remove(path)
    this.#options.metrics.forget(path)
    this.#options.log.info(
      { directory: path },
      `${path} is no longer configured: holdfast leaves it on the disk as it is`,
    )
  }

  #due(state: DirectoryState, cause: string): void {
    // Its record says which versions are too old to be published.
    if (!this.#comparing.has(state)) this.#publications.add(state.publishOperation, cause)
  }

  #dueHooks(state: DirectoryState): void {
    if (state.pendingHooks.length > 0) this.#hooks.add(state.hooksOperation, state.digest ?? '')
  }

  #follow(): void {
    this.#source?.follow(desiredObjects(this.states))
  }

  #listener(): SourceListener {
    return {
      observed: (reference, observation, details) => this.#observed(reference, observation, details.rewound),
      confirmed: (reference) => this.#confirmed(reference),
      watchRestarted: (reason, reference, lost) => this.#restarted(reason, reference, lost),
    }
  }

  #observed(reference: ObjectReference, observation: ObservedState, rewound: boolean): void {
    const name = describeReference(reference)
    if (rewound) {
      const message = `${name} went back to an older version, and a fresh read confirms it: holdfast publishes it`
      this.#options.log.warn({ reason: 'HistoryRewound', object: name }, message)
      this.#events.rewound(reference, observation, message)
    }
    if (observation.state !== 'unknown') this.#freshness.confirmed(reference)
    for (const state of this.states.needing(reference)) {
      this.#freshness.reported(state)
      this.#due(state, name)
    }
  }

  #confirmed(reference: ObjectReference): void {
    this.#freshness.confirmed(reference)
    for (const state of this.states.needing(reference)) {
      // A pass that is due says afterwards how fresh the directory is.
      if (!this.#publications.pending(state.publishOperation)) this.refresh(state)
    }
  }

  #restarted(reason: WatchRestartReason, reference?: ObjectReference, lost?: UnknownState): void {
    this.#options.metrics.watchRestarted(reason)
    if (reference === undefined) return
    this.#freshness.restarted(reference, reason, lost)
  }

  /** Brings the condition Fresh up to what the source last said. */
  refresh(state: DirectoryState): void {
    this.#freshness.refresh(state)
  }

  async #reconcile(batch: Batch): Promise<Map<string, QueueResult>> {
    const source = this.#source
    if (source === undefined) return new Map()
    this.#removals.busy()
    try {
      return await reconcile(batch, {
        log: this.#options.log,
        metrics: this.#options.metrics,
        events: this.#events,
        signal: this.#abort.signal,
        lockTimeout: 0,
        requireProven: () => this.#configuration.requireProven,
        source,
        state: (operation) => this.states.byOperation(operation),
        applied: (state, outcome) => this.#applied(state, outcome),
      })
    } finally {
      // A comparison may have found the publication of another process, with hooks that nobody has run.
      for (const operation of batch.keys()) {
        const state = this.states.byOperation(operation)
        if (state?.intact && !this.#hooks.expects(state.hooksOperation)) this.#dueHooks(state)
      }
      if (!this.#abort.signal.aborted) this.#removals.idle()
    }
  }

  #statesOf(batch: Batch): DirectoryState[] {
    return [...batch.keys()].map((key) => this.states.byOperation(key)).filter((state) => state !== undefined)
  }

  /** It may be that nobody has asked for this directory any more. */
  #stalled(state: DirectoryState, milliseconds: number): void {
    const { path: directory, publishOperation: operation } = state
    if (this.states.byPath(directory) !== state) return
    const meaning = stalledMeaning({ operation, directory, milliseconds, on: describeFileSystem(directory) })
    for (const { level, reason, message, fields } of meaning.lines) {
      this.#options.log[level]({ reason, directory, ...fields }, message)
    }
    this.#events.pass(meaning)
    if (meaning.condition) state.setPublished(meaning.condition, new Date())
    this.refresh(state)
    this.#options.changed()
  }

  #applied(state: DirectoryState, outcome: Outcome): void {
    // A hook that has failed waits for its next try, however often the same content is confirmed meanwhile.
    if (outcome.kind === 'published' && outcome.change !== 'unchanged') {
      this.#removals.add(state.path)
      this.#dueHooks(state)
    }
    this.refresh(state)
    this.#options.changed()
  }
}
