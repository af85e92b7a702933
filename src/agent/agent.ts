import type { AgentConfiguration, SourceConfiguration } from '../config/types.js'
import type { Log } from '../log.js'
import {
  describeReference,
  type ObjectReference,
  type Observation,
  type Source,
  type SourceListener,
  type WatchRestartReason,
} from '../objects/types.js'
import type { Attempt } from './attempt.js'
import { begin } from './begin.js'
import type { DirectoryState } from './directory-state.js'
import { openEvents, unheard, type AgentEvents } from './events.js'
import { Confirmations, now } from './confirmations.js'
import { freshness, lossGrace } from './freshness.js'
import { runHookBatch } from './hook-runner.js'
import type { Metrics } from './metrics.js'
import { causes, hooksOperation, publishOperation } from './operations.js'
import { publishBatch } from './publisher.js'
import { recordHeldBack } from './record-versions.js'
import { Queue } from './queue.js'
import { configurationChange } from './reload.js'
import { Retired } from './retired.js'
import { StateRegistry } from './state-registry.js'
import { wantedObjects } from './wanted.js'

export type OpenSource = (configuration: SourceConfiguration, listener: SourceListener) => Promise<Source>

export interface AgentOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly openSource: OpenSource
  /** This node's name in the cluster, for events; the empty string where nobody says. */
  readonly node: string
  /** Something that the status shows has changed. */
  readonly changed: () => void
}

/**
 * Keeps directories as a source says. It is begun once, told of new configurations, and stopped once; what it knows of each
 * directory is in `states`.
 */
export class Agent {
  readonly states = new StateRegistry()
  readonly #options: AgentOptions
  readonly #publications: Queue
  readonly #hooks: Queue
  readonly #abort = new AbortController()
  readonly #confirmations = new Confirmations()
  readonly #retired: Retired
  #configuration: AgentConfiguration
  #source: Source | undefined
  #events = unheard
  #driftTimer: NodeJS.Timeout | undefined
  #lossTimer: NodeJS.Timeout | undefined

  constructor(configuration: AgentConfiguration, options: AgentOptions) {
    this.#configuration = configuration
    this.#options = options
    this.#retired = new Retired(options.log)
    const failed = (error: unknown, batch: ReadonlyMap<string, unknown>) => {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      options.log.error({ reason: 'PublishFailed', operations: [...batch.keys()] }, `a fault of holdfast: ${message}`)
    }
    this.#publications = new Queue({ runs: 'batch', failed, run: (batch) => this.#publish(batch) })
    this.#hooks = new Queue({
      runs: 'key',
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

  /** The client certificate that the source uses. */
  clientCertificateNotAfter(): Date | undefined {
    return this.#source?.clientCertificateNotAfter()
  }

  /** Compares every directory with its record, then follows the source. Rejects where the source cannot be made at all. */
  async start(): Promise<void> {
    for (const state of this.states) await this.#begin(state)
    const { source, events } = await this.#open(this.#configuration.source)
    this.#source = source
    this.#events = events
    this.#follow()
    for (const state of this.states) this.#due(state, causes.start)
    this.#compareRegularly()
  }

  /** Opens a source and what tells its cluster, both or neither. */
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

  /** Compares every directory with the disk, and repairs what differs; what waits for a change is tried again. */
  compareAll(): void {
    for (const state of this.states) {
      this.#due(state, causes.driftCheck)
      if (state.whole) this.#dueHooks(state)
    }
  }

  /** Puts a new configuration in force. Rejects, with the old one in force, where its source cannot be made. */
  async reconfigure(configuration: AgentConfiguration): Promise<void> {
    const change = configurationChange(this.#configuration, configuration)
    const next = change.sourceChanged ? await this.#open(configuration.source) : undefined
    const { driftInterval, requireProven } = this.#configuration
    this.#configuration = configuration
    if (configuration.driftInterval !== driftInterval) this.#compareRegularly()
    for (const path of change.dropped) this.#drop(path)
    for (const directory of change.changed) {
      const state = this.states.byPath(directory.path)
      if (state === undefined) continue
      state.configuration = directory
      this.#options.metrics.follow(
        directory.path,
        directory.afterPublish.map(({ name }) => name),
      )
      this.#due(state, causes.configuration)
      if (state.whole) this.#dueHooks(state)
    }
    // What is on the disk is as it was, but it may be good enough no more, or now.
    if (configuration.requireProven !== requireProven) {
      for (const state of this.states) this.#due(state, causes.configuration)
    }
    for (const directory of change.added) await this.#begin(this.states.add(directory))
    if (next) {
      const before = { source: this.#source, events: this.#events }
      this.#source = next.source
      this.#events = next.events
      this.#confirmations.clear()
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

  /** Tells that a configuration was not put in force. */
  configurationRefused(message: string): void {
    this.#events.configurationInvalid(message)
  }

  /** Finishes or gives up what is in flight, at a point where every target is whole. */
  async stop(): Promise<void> {
    clearInterval(this.#driftTimer)
    clearTimeout(this.#lossTimer)
    this.#abort.abort()
    await Promise.all([this.#publications.close(), this.#hooks.close()])
    await this.#events.close()
    await this.#source?.close()
    for (const state of this.states) await recordHeldBack(state, this.#options.log, { urgent: true })
    await this.#retired.sync()
  }

  async #begin(state: DirectoryState): Promise<void> {
    await begin(state, this.#options)
    if (state.whole) this.#dueHooks(state)
  }

  #drop(path: string): void {
    this.#publications.forget(publishOperation(path))
    this.#hooks.forget(hooksOperation(path))
    this.states.remove(path)
    this.#options.metrics.forget(path)
    this.#options.log.info({ directory: path }, `${path} is not configured any more: it stays on the disk as it is`)
  }

  #due(state: DirectoryState, cause: string): void {
    this.#publications.add(publishOperation(state.path), cause)
  }

  #dueHooks(state: DirectoryState): void {
    if (state.pendingHooks.length > 0) this.#hooks.add(hooksOperation(state.path), state.digest ?? '')
  }

  #follow(): void {
    this.#source?.follow(wantedObjects(this.states))
  }

  #listener(): SourceListener {
    return {
      observed: (reference, observation, details) => this.#observed(reference, observation, details.rewound),
      confirmed: (reference) => this.#confirmed(reference),
      watchRestarted: (reason, reference) => this.#restarted(reason, reference),
    }
  }

  #observed(reference: ObjectReference, observation: Observation, rewound: boolean): void {
    const name = describeReference(reference)
    if (rewound) {
      const message = `${name} has gone back to an older version, which a fresh read confirms: it is published`
      this.#options.log.warn({ reason: 'HistoryRewound', object: name }, message)
      this.#events.rewound(reference, observation, message)
    }
    if (observation.state !== 'unknown') this.#confirmations.confirmed(reference, now())
    for (const state of this.states.needing(reference)) this.#due(state, name)
  }

  #confirmed(reference: ObjectReference): void {
    this.#confirmations.confirmed(reference, now())
    for (const state of this.states.needing(reference)) {
      // What is about to be published tells how fresh it is afterwards.
      if (!this.#publications.pending(publishOperation(state.path))) this.refresh(state)
    }
  }

  #restarted(reason: WatchRestartReason, reference: ObjectReference | undefined): void {
    this.#options.metrics.watchRestarted(reason)
    if (reference === undefined) return
    this.#confirmations.restarted(reference, reason, now())
    // One look for all that were lost together, after the time that they have to come back.
    this.#lossTimer ??= setTimeout(() => {
      this.#lossTimer = undefined
      for (const state of this.states) this.refresh(state)
    }, lossGrace + 100)
  }

  /** Brings the condition Fresh up to what the source last said. */
  refresh(state: DirectoryState): void {
    const source = this.#source
    if (source === undefined) return
    const { verdict, confirmedAt } = freshness(
      state,
      (reference) => source.latest(reference),
      now(),
      this.#confirmations,
    )
    if (confirmedAt) {
      state.confirmedAt = confirmedAt
      this.#options.metrics.confirmed(state.path, confirmedAt)
    }
    if (state.setFresh(verdict, new Date())) this.#options.changed()
  }

  async #publish(batch: Parameters<typeof publishBatch>[0]): ReturnType<typeof publishBatch> {
    const source = this.#source
    if (source === undefined) return new Map()
    this.#retired.busy()
    try {
      return await publishBatch(batch, {
        log: this.#options.log,
        metrics: this.#options.metrics,
        events: this.#events,
        signal: this.#abort.signal,
        lockTimeout: 0,
        requireProven: () => this.#configuration.requireProven,
        source: () => source,
        state: (operation) => this.states.byOperation(operation),
        settled: (state, attempt) => this.#settled(state, attempt),
      })
    } finally {
      // A comparison may have found the publication of another process, with hooks that nobody has run.
      for (const operation of batch.keys()) {
        const state = this.states.byOperation(operation)
        if (state?.whole && !this.#hooks.expects(hooksOperation(state.path))) this.#dueHooks(state)
      }
      if (!this.#abort.signal.aborted) this.#retired.idle()
    }
  }

  #settled(state: DirectoryState, attempt: Attempt): void {
    if (attempt.kind === 'published') {
      // One that has failed waits for its next try, however often the same content is confirmed meanwhile.
      if (attempt.outcome !== 'unchanged') {
        this.#retired.add(state.path)
        this.#dueHooks(state)
      }
    }
    this.refresh(state)
    this.#options.changed()
  }
}
