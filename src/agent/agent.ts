import { isDeepStrictEqual } from 'node:util'
import { objectName } from '../message-text.js'
import type { AgentConfiguration, DirectoryConfiguration, SourceConfiguration } from '../config/types.js'
import type {
  ObjectReference,
  ObservedState,
  Source,
  SourceListener,
  UnknownState,
  WatchRestartReason,
} from '../objects/types.js'
import type { AgentOptions, InForce } from './agent-options.js'
import { desiredObjects } from './desired-content.js'
import { DirectoryStates, type DirectoryState } from './directory-state.js'
import { FreshnessTracker } from './report/freshness-tracker.js'
import { Operations } from './operations.js'
import { causes } from './reconcile.js'
import { noEvents, openEvents, type AgentEvents } from './report/agent-events.js'
import { noReport, openNodeReport } from './report/node-report.js'
import { withOldPaths } from './leaving/moves.js'
import { loadNeeded } from './needed-modules.js'
import { endsWithin } from '../deadline.js'
import { Departures } from './leaving/departures.js'
import { Drops } from './leaving/drops.js'
import { NamedDirectories } from './leaving/named-directories.js'
import type { DirectoryStatus } from './report/status-file.js'
import type { Pending } from './workqueue.js'

/** Milliseconds that the end waits for directories that leave: each goes on with the next start. */
const leavingGrace = 2_000

/** A configuration waits for a move that an earlier one asks for. */
export class StillMovingError extends Error {}

/**
 * Keeps directories as a source says. It starts once, takes new configurations, and stops once; `states` has its knowledge of each
 * directory.
 */
export class Agent {
  readonly states = new DirectoryStates()
  readonly #options: AgentOptions
  readonly #operations: Operations
  readonly #freshness: FreshnessTracker
  readonly #drops: Drops
  readonly #departures: Departures
  /** Each step that waits looks at this signal before it goes on. */
  readonly #ending = new AbortController()
  readonly #inForce: InForce
  #report = noReport
  #driftTimer: NodeJS.Timeout | undefined
  /** Directories of which an object was confirmed since the last look at them. */
  readonly #confirmedStates = new Set<DirectoryState>()
  #refreshing: NodeJS.Immediate | undefined

  constructor(configuration: AgentConfiguration, given: AgentOptions) {
    const inForce: InForce = { configuration, source: undefined, events: noEvents }
    this.#inForce = inForce
    const changed = (): void => {
      given.changed()
      this.#report.changed()
    }
    this.#options = { ...given, changed }
    const named = new NamedDirectories(true)
    const common = { ...this.#options, inForce, states: this.states, signal: this.ended }
    this.#departures = new Departures({ ...common, named })
    this.#drops = new Drops({ ...common, named })
    this.#freshness = new FreshnessTracker(common)
    this.#operations = new Operations({ ...common, departures: this.#departures, freshness: this.#freshness })
    for (const directory of withOldPaths(configuration.directories)) this.states.add(directory)
  }

  get configuration(): AgentConfiguration {
    return this.#inForce.configuration
  }

  /** Aborted from the beginning of the end on. */
  get ended(): AbortSignal {
    return this.#ending.signal
  }

  #hasEnded(): boolean {
    return this.ended.aborted
  }

  /** How long a directory's operation on the disk has been running, in seconds; 0: none is. */
  runningSeconds(state: DirectoryState): number {
    return this.#operations.runningSeconds(state)
  }

  /** Resolves when the loop that publishes has turned. */
  turn(): Promise<void> {
    return this.#operations.turn()
  }

  /** Its current operations, for people. */
  pending(): Pending[] {
    return this.#operations.pending()
  }

  /** The client certificate that the source uses. */
  clientCertificateNotAfter(): Date | undefined {
    return this.#inForce.source?.clientCertificateNotAfter()
  }

  /** Compares every directory with its record, then follows the source. Rejects where the source cannot be made at all. */
  async start(): Promise<void> {
    await loadNeeded(this.#inForce.configuration)
    await this.#departures.configure(this.#inForce.configuration)
    await this.#startDirectories([...this.states])
    const opened = await this.#open(this.#inForce.configuration.source)
    Object.assign(this.#inForce, opened)
    await this.#openReport(opened.source)
    this.ended.throwIfAborted()
    this.#follow()
    for (const state of this.states) this.#operations.publish(state, causes.start)
    this.#compareRegularly()
    this.#operations.watchMounts()
    void this.#drops.configure(this.#inForce.configuration)
  }

  /** Directories that are not configured any more, and are to be removed. */
  dropStatus(): DirectoryStatus[] {
    return this.#drops.status()
  }

  /** Opens a source and what reports to its cluster, both or neither. */
  async #open(configuration: SourceConfiguration): Promise<{ source: Source; events: AgentEvents }> {
    const source = await this.#options.openSource(configuration, this.#listener())
    try {
      const events = await openEvents(source, this.#options)
      this.ended.throwIfAborted()
      return { source, events }
    } catch (error) {
      await source.close()
      throw error
    }
  }

  /** Reports of this node to the cluster of this source, and none to another one any more. */
  async #openReport(source: Source): Promise<void> {
    const before = this.#report
    this.#report = noReport
    await before.close()
    if (!this.#inForce.configuration.report || this.#hasEnded()) return
    const report = await openNodeReport(source, {
      ...this.#options,
      states: this.states,
      configuration: () => this.#inForce.configuration.digest,
    })
    if (this.#hasEnded()) await report.close()
    else this.#report = report
  }

  #compareRegularly(): void {
    clearInterval(this.#driftTimer)
    const compare = (): void => {
      for (const state of this.states) this.#operations.publish(state, causes.driftCheck)
    }
    this.#driftTimer = setInterval(compare, this.#inForce.configuration.driftInterval)
  }

  /**
   * An operator asks for it: compares every directory with the disk, and repairs what differs, also where another agent has taken it over.
   * Changes and hooks that wait do so no longer.
   */
  compareAll(): void {
    for (const state of this.states) {
      state.happened({ kind: 'claimed' })
      this.#operations.publish(state, causes.driftCheck)
      this.#operations.hurry(state)
      if (state.facts.intact) this.#operations.runHooks(state)
    }
  }

  /**
   * Puts a new configuration in force. Rejects, with the old one in force, where its source cannot be made; and where the agent ends meanwhile: the
   * next start then finishes the change.
   */
  async reconfigure(configuration: AgentConfiguration): Promise<void> {
    this.#refuseChains(configuration)
    await loadNeeded(configuration)
    const change = configurationChange(this.#inForce.configuration, configuration)
    const next = change.sourceChanged ? await this.#open(configuration.source) : undefined
    const { report } = this.#inForce.configuration
    let added: readonly DirectoryConfiguration[]
    try {
      added = await this.#reconfigureDirectories(configuration, change)
    } catch (error) {
      await next?.events.close()
      await next?.source.close()
      throw error
    }
    const before = { ...this.#inForce }
    if (next) {
      Object.assign(this.#inForce, next)
      this.#freshness.forgetSource()
    }
    if (this.#inForce.source && (next || configuration.report !== report)) await this.#openReport(this.#inForce.source)
    else this.#report.retryRefused()
    if (next) {
      await before.events.close()
      await before.source?.close()
    }
    this.ended.throwIfAborted()
    this.#inForce.events.reloaded()
    this.#follow()
    for (const { path } of added) {
      const state = this.states.byPath(path)
      if (state) this.#operations.publish(state, causes.configuration)
    }
    this.#options.changed()
  }

  /** Answers the directories that are new. Rejects where the agent ends meanwhile. */
  async #reconfigureDirectories(
    configuration: AgentConfiguration,
    change: ConfigurationChange,
  ): Promise<readonly DirectoryConfiguration[]> {
    const { driftInterval, requireProven } = this.#inForce.configuration
    this.#inForce.configuration = configuration
    if (configuration.driftInterval !== driftInterval) this.#compareRegularly()
    for (const path of change.dropped) {
      const state = this.states.byPath(path)
      if (state) this.#drop(state)
    }
    // The record of a directory that comes back must say that it had left, before a pass compares the two.
    const leaving = this.#departures.configure(configuration)
    void this.#drops.configure(configuration)
    await leaving
    this.ended.throwIfAborted()
    const added = [...change.added]
    for (const directory of change.changed) {
      const state = this.states.byPath(directory.path)
      // An old path that was done with is wanted again.
      if (state === undefined) {
        added.push(directory)
        continue
      }
      state.happened({ kind: 'configured', configuration: directory })
      this.#operations.publish(state, causes.configuration)
      if (state.facts.intact) this.#operations.runHooks(state)
    }
    // The disk is unchanged, but its file system may not be good enough any more, or may be now.
    if (configuration.requireProven !== requireProven) {
      for (const state of this.states) this.#operations.publish(state, causes.configuration)
    }
    await this.#startDirectories(added.map((directory) => this.states.add(directory)))
    this.ended.throwIfAborted()
    return added
  }

  /** The old path of a directory that moves on itself would stay as it is for ever. A move that is done has no state here any more. */
  #refuseChains({ directories }: AgentConfiguration): void {
    for (const { path: to, place, movedFrom } of directories) {
      if (movedFrom === undefined) continue
      const first = [...this.states].find(({ configuration }) => configuration.follows === movedFrom.path)
      if (first === undefined) continue
      const advice = `the agent reads this file again once that move is done; or first leave movedFrom out of ${movedFrom.path}, which leaves ${first.path} as it is`
      throw new StillMovingError(
        `${place}: ${first.path} still moves to ${movedFrom.path}, which is to move to ${to}: ${advice}`,
      )
    }
  }

  /** Reports that a configuration was not put in force. */
  configurationRefused(message: string): void {
    this.#inForce.events.configurationInvalid(message)
  }

  /**
   * Finishes or aborts its operations, at a point where every target is intact. Answers the directories whose disks do not answer: no
   * call ends the threads that wait for those.
   */
  async stop(): Promise<string[]> {
    this.#ending.abort()
    clearInterval(this.#driftTimer)
    const left = Promise.all([this.#departures.ended(), this.#drops.ended()])
    await this.#operations.stop()
    await endsWithin(left, leavingGrace)
    await this.#report.close()
    await this.#inForce.events.close()
    await this.#inForce.source?.close()
    // What the source said until its close has begun a new refresh.
    clearImmediate(this.#refreshing)
    const hanging = await this.#operations.finish()
    return [...new Set([...hanging, ...this.#departures.underWay(), ...this.#drops.underWay()])]
  }

  async #startDirectories(states: readonly DirectoryState[]): Promise<void> {
    await this.#operations.start(states, (state) => {
      if (state.facts.intact) this.#operations.runHooks(state)
      if (this.#inForce.source === undefined) return
      // The source learns the versions that are published before anything of it is.
      this.#follow()
      this.#operations.publish(state, causes.start)
      this.#options.changed()
    })
  }

  #drop(state: DirectoryState): void {
    const { path, configuration } = state
    this.#operations.forget(state)
    // With `remove`, drops.ts logs the end of the others.
    if (configuration.onDrop === 'remove') return
    this.#options.log.info(
      { directory: path },
      `${path} is no longer configured: holdfast leaves it on the disk as it is`,
    )
  }

  readonly #latest = (reference: ObjectReference): ObservedState | undefined => this.#inForce.source?.latest(reference)

  #follow(): void {
    const desired = desiredObjects(this.states, this.#latest)
    // First: a source may report at once, and what that changes is followed then.
    this.#freshness.keepOnly(desired.map(({ reference }) => reference))
    this.#inForce.source?.follow(desired)
  }

  #listener(): SourceListener {
    return {
      observed: (reference, observation, details) => this.#observed(reference, observation, details.rewound),
      confirmed: (reference) => this.#confirmed(reference),
      told: (reference) => {
        for (const state of this.states.needing(reference, this.#latest)) this.#freshness.told(state)
      },
      watchRestarted: (reason, references, lost) => this.#restarted(reason, references, lost),
      api: this.#options.metrics.api,
    }
  }

  #observed(reference: ObjectReference, observation: ObservedState, rewound: boolean): void {
    const name = objectName(reference)
    if (rewound) {
      // Another cluster's agent may have published here: its versions and this cluster's have no order.
      const message = `${name} is in an older version than was published here, as after a restore of etcd, or where another cluster's agent published before; a fresh read confirms it: holdfast publishes it`
      this.#options.log.warn({ reason: 'HistoryRewound', object: name }, message)
      this.#inForce.events.rewound(reference, observation, message)
    }
    if (observation.state !== 'unknown') this.#freshness.confirmed(reference)
    // Follows the objects that match now before the source goes on: it reads new ones, and forgets missing ones.
    if (reference.selector !== undefined) this.#follow()
    for (const state of this.states.needing(reference, this.#latest)) {
      this.#freshness.reported(state)
      this.#operations.publishNews(state, name)
    }
  }

  #confirmed(reference: ObjectReference): void {
    this.#freshness.confirmed(reference)
    for (const state of this.states.needing(reference, this.#latest)) this.#confirmedStates.add(state)
    // One look for all that are confirmed together, as by a list or a bookmark: each looks at every object of the directory.
    this.#refreshing ??= setImmediate(() => {
      this.#refreshing = undefined
      const states = [...this.#confirmedStates]
      this.#confirmedStates.clear()
      for (const state of states) {
        // A pass that is due says afterwards how fresh the directory is.
        if (this.states.byPath(state.path) === state && !this.#operations.isPending(state)) this.refresh(state)
      }
    })
  }

  #restarted(reason: WatchRestartReason, references: readonly ObjectReference[], lost?: UnknownState): void {
    this.#options.metrics.watchRestarted(reason)
    for (const reference of references) this.#freshness.restarted(reference, reason, lost)
  }

  /** Brings the condition Fresh up to what the source last said. */
  refresh(state: DirectoryState): void {
    this.#freshness.refresh(state)
  }
}

/** What a configuration that was read again asks to be done. */
interface ConfigurationChange {
  readonly added: readonly DirectoryConfiguration[]
  readonly changed: readonly DirectoryConfiguration[]
  /** Paths that are not the agent's any more; what becomes of them is for `onDrop` to say. */
  readonly dropped: readonly string[]
  readonly sourceChanged: boolean
}

/** Compares two configurations. Where a directory stands in the file does not matter. @internal */
export function configurationChange(before: AgentConfiguration, after: AgentConfiguration): ConfigurationChange {
  const [old, directories] = [withOldPaths(before.directories), withOldPaths(after.directories)]
  const known = new Map(old.map((directory) => [directory.path, directory]))
  const paths = new Set(directories.map(({ path }) => path))
  return {
    added: directories.filter(({ path }) => !known.has(path)),
    changed: directories.filter((directory) => {
      const previous = known.get(directory.path)
      return previous !== undefined && !isDeepStrictEqual(withoutPlaces(previous), withoutPlaces(directory))
    }),
    dropped: old.map(({ path }) => path).filter((path) => !paths.has(path)),
    sourceChanged: !isDeepStrictEqual(before.source, after.source),
  }
}

function withoutPlaces(directory: DirectoryConfiguration): object {
  const contents = directory.contents.map((content) => ({ ...content, place: '' }))
  const beforePublish = directory.beforePublish.map((check) => ({ ...check, place: '' }))
  const afterPublish = directory.afterPublish.map((hook) => ({ ...hook, place: '' }))
  return { ...directory, place: '', contents, beforePublish, afterPublish }
}
