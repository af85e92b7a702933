import { expand, referencesOf } from '../../config/references.js'
import { objectName } from '../../object-name.js'
import type { ObjectReference, Source, UnknownState, WatchRestartReason } from '../../objects/types.js'
import type { DirectoryState, DirectoryStates } from '../directory-state.js'
import { freshness, Heartbeats, lossGrace, now } from './freshness.js'
import { reportStanding, type Metrics } from './report-metrics.js'

interface FreshnessTrackerOptions {
  readonly states: DirectoryStates
  readonly metrics: Metrics
  /** undefined until the first one is open. */
  source(): Pick<Source, 'latest' | 'isBehind'> | undefined
  /** A condition has changed. */
  changed(): void
}

/** Milliseconds that a publication may take before the agent reports a newer version: most take far less. */
const publicationGrace = 1_000

export class FreshnessTracker {
  readonly #heartbeats = new Heartbeats()
  #lossTimer: NodeJS.Timeout | undefined
  #lookAgain = false
  #newsTimer: NodeJS.Timeout | undefined
  /** Directories of which something was reported since the timer began. */
  readonly #news = new Set<DirectoryState>()

  constructor(private readonly options: FreshnessTrackerOptions) {}

  confirmed(reference: ObjectReference): void {
    if (!this.#heartbeats.confirmed(reference, now())) this.#lookLater()
  }

  restarted(reference: ObjectReference, reason: WatchRestartReason, lost?: UnknownState): void {
    this.#heartbeats.restarted(reference, reason, now(), lost)
    this.#lookLater()
  }

  /** One look for all that were lost together, after the time that they have to come back; one more for what came meanwhile. */
  #lookLater(): void {
    this.#lookAgain = this.#lossTimer !== undefined
    this.#lossTimer ??= setTimeout(() => {
      this.#lossTimer = undefined
      this.#refreshAll()
      if (this.#lookAgain) this.#lookLater()
    }, lossGrace + 100)
  }

  /** The source has reported something about this directory, which is to be published. */
  reported(state: DirectoryState): void {
    state.reports += 1
    this.told(state)
  }

  /** The source was told of something newer about this directory. */
  told(state: DirectoryState): void {
    this.#news.add(state)
    this.#newsTimer ??= setTimeout(() => {
      this.#newsTimer = undefined
      const news = [...this.#news]
      this.#news.clear()
      // A directory that was dropped meanwhile gets no report any more.
      for (const one of news) if (this.options.states.byPath(one.path) === one) this.refresh(one)
    }, publicationGrace)
  }

  #refreshAll(): void {
    for (const state of this.options.states) this.refresh(state)
  }

  refresh(state: DirectoryState): void {
    const { metrics } = this.options
    const source = this.options.source()
    if (source === undefined) return
    const latest = (reference: ObjectReference) => source.latest(reference)
    const behind = referencesOf(expand(state.configuration, latest)).find((one) => source.isBehind?.(one))
    state.setBehind(behind && objectName(behind), new Date())
    reportStanding(metrics, state)
    const { condition, confirmedAt } = freshness(state, latest, now(), this.#heartbeats)
    if (confirmedAt) {
      state.confirmedAt = confirmedAt
      metrics.confirmed(state.path, confirmedAt)
    }
    if (state.setFresh(condition, new Date())) this.options.changed()
  }

  /** Only these are followed from now on. */
  keepOnly(references: Iterable<ObjectReference>): void {
    this.#heartbeats.keepOnly(references)
  }

  /** Another source knows nothing of what this one said. */
  forgetSource(): void {
    this.#heartbeats.clear()
  }

  close(): void {
    clearTimeout(this.#lossTimer)
    clearTimeout(this.#newsTimer)
  }
}
