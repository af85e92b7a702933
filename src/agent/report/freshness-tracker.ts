import { expand, referencesOf } from '../../config/references.js'
import { objectName } from '../../message-text.js'
import type { ObjectReference, ObservedState, Source, UnknownState, WatchRestartReason } from '../../objects/types.js'
import { isAhead, type DirectoryFacts, type DirectoryState, type DirectoryStates } from '../directory-state.js'
import type { ConditionState } from '../conditions.js'
import type { Reason } from '../../reasons.js'

/**
 * Milliseconds without a confirmation after which a directory is not called fresh any more, although no error was reported. An API
 * server sends a bookmark each minute, and a watch starts again after ten minutes at most.
 */
const longestSilence = 15 * 60_000

/** Milliseconds that a lost watch has to come back before the agent reports it: most do within a second. @internal */
export const lossGrace = 3_000

/** These end a watch in the ordinary course: it starts again at once, and nothing was missed. */
const ordinary: ReadonlySet<WatchRestartReason> = new Set(['timeout', 'expired', 'goaway'])

interface FreshnessTrackerOptions {
  readonly states: DirectoryStates
  readonly inForce: { readonly source: Pick<Source, 'latest' | 'isBehind'> | undefined }
  /** A condition has changed. */
  changed(): void
  /** No timer runs any more once it is aborted. */
  readonly signal: AbortSignal
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

  constructor(private readonly options: FreshnessTrackerOptions) {
    const close = (): void => {
      clearTimeout(this.#lossTimer)
      clearTimeout(this.#newsTimer)
    }
    options.signal.addEventListener('abort', close, { once: true })
  }

  confirmed(reference: ObjectReference): void {
    if (!this.#heartbeats.confirmed(reference, now())) this.#lookLater()
  }

  restarted(reference: ObjectReference, reason: WatchRestartReason, lost?: UnknownState): void {
    this.#heartbeats.restarted(reference, reason, now(), lost)
    this.#lookLater()
  }

  /** One look for all that were lost together, after the time that they have to come back; one more for what came meanwhile. */
  #lookLater(): void {
    if (this.options.signal.aborted) return
    this.#lookAgain = this.#lossTimer !== undefined
    this.#lossTimer ??= setTimeout(() => {
      this.#lossTimer = undefined
      this.#refreshAll()
      if (this.#lookAgain) this.#lookLater()
    }, lossGrace + 100)
  }

  /** The source has reported something about this directory, which is to be published. */
  reported(state: DirectoryState): void {
    state.happened({ kind: 'reported' })
    this.told(state)
  }

  /** The source was told of something newer about this directory. */
  told(state: DirectoryState): void {
    if (this.options.signal.aborted) return
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
    const { source } = this.options.inForce
    if (source === undefined) return
    const latest = (reference: ObjectReference) => source.latest(reference)
    const behind = referencesOf(expand(state.configuration, latest)).find((one) => source.isBehind?.(one))
    state.happened({ kind: 'told', behind: behind && objectName(behind) })
    const { condition, confirmedAt } = freshness(state.facts, latest, now(), this.#heartbeats)
    if (confirmedAt) state.happened({ kind: 'confirmed', at: confirmedAt })
    const before = state.facts.fresh
    state.happened({ kind: 'judged', type: 'Fresh', condition })
    if (state.facts.fresh !== before) this.options.changed()
  }

  /** Only these are followed from now on. */
  keepOnly(references: Iterable<ObjectReference>): void {
    this.#heartbeats.keepOnly(references)
  }

  /** Another source knows nothing of what this one said. */
  forgetSource(): void {
    this.#heartbeats.clear()
  }
}

interface Freshness {
  readonly condition: ConditionState
  /** When the source last confirmed all published versions as the newest; undefined: not since the start. */
  readonly confirmedAt: Date | undefined
}

/**
 * Whether what a directory has published is confirmed as current: the publication must hold the newest objects, and the source must
 * have confirmed each of them lately.
 * @internal
 */
export function freshness(
  facts: DirectoryFacts,
  latest: Source['latest'],
  moment: Moment,
  heartbeats: Pick<Heartbeats, 'lastConfirmed' | 'lossOf'>,
): Freshness {
  let oldest: Moment | undefined
  for (const reference of referencesOf(expand(facts.configuration, latest))) {
    const why = whyUnconfirmed(reference, latest(reference), moment, heartbeats)
    if (why !== undefined) return why
    const confirmation = heartbeats.lastConfirmed(reference)
    if (confirmation && (oldest === undefined || confirmation.monotonic < oldest.monotonic)) oldest = confirmation
  }
  if (facts.published?.status !== 'True') {
    return unconfirmed(facts.published?.reason ?? 'SourceUnavailable', 'the newest objects are not published')
  }
  if (isAhead(facts)) {
    return unconfirmed('NotConfirmed', 'what is published is newer than what the source has reported')
  }
  if (facts.behind !== undefined) {
    return unconfirmed('NotConfirmed', `the source has a newer version of ${facts.behind}, which is not read yet`)
  }
  if (facts.news !== undefined) {
    return unconfirmed('NotConfirmed', 'the source has something newer, which is not published yet')
  }
  if (oldest === undefined) return unconfirmed('NotConfirmed', 'the source has not confirmed anything yet')
  if (moment.monotonic - oldest.monotonic > longestSilence) {
    const message = `the source has confirmed nothing for ${Math.round(longestSilence / 60_000)} minutes`
    return { condition: { status: 'False', reason: 'SourceUnavailable', message }, confirmedAt: oldest.wall }
  }
  return {
    condition: {
      status: 'True',
      reason: 'Published',
      message: 'the source has confirmed that nothing is newer',
    },
    confirmedAt: oldest.wall,
  }
}

function unconfirmed(reason: Reason, message: string): Freshness {
  return { condition: { status: 'False', reason, message }, confirmedAt: undefined }
}

/** Why the newest version of one object is not known; undefined: the source has confirmed its report of it. */
function whyUnconfirmed(
  reference: ObjectReference,
  observation: ObservedState | undefined,
  moment: Moment,
  heartbeats: Pick<Heartbeats, 'lastConfirmed' | 'lossOf'>,
): Freshness | undefined {
  const name = objectName(reference)
  // Since the start, as after a boot without an API server: no watch was lost, and the record alone knows the published versions.
  const isFirst = heartbeats.lastConfirmed(reference) === undefined
  if (observation?.state === 'unknown') {
    const { reason, message } = observation
    return unconfirmed(isFirst && reason === 'SourceUnavailable' ? 'NotConfirmed' : reason, message)
  }
  const loss = heartbeats.lossOf(reference, moment)
  if (loss && moment.monotonic - loss.since.monotonic >= lossGrace) {
    const since = loss.since.wall.toISOString()
    const last = loss.message === undefined ? '' : `: ${loss.message}`
    return unconfirmed(loss.reason, `the watch of ${name} was lost at ${since}, and has not recovered${last}`)
  }
  return observation === undefined || isFirst
    ? unconfirmed('NotConfirmed', `the source has not reported ${name} yet`)
    : undefined
}

/** A point in time: `monotonic` to measure with, since the wall clock may step; `wall` to show. @internal */
export interface Moment {
  /** performance.now(). */
  readonly monotonic: number
  readonly wall: Date
}

const now = (): Moment => ({ monotonic: performance.now(), wall: new Date() })

/** The watch of an object was lost, and the source has said nothing of the object since. */
interface Loss {
  readonly reason: Reason
  /** The last error, where there was one. */
  readonly message: string | undefined
  readonly since: Moment
  /** The API server refused the watch itself. */
  readonly denied: boolean
  /** When a list has answered since then. */
  readonly listed?: Moment
}

/** When the source last confirmed its report of an object as current, and whether it may have lost sight of it since. @internal */
export class Heartbeats {
  readonly #confirmed = new Map<string, Moment>()
  readonly #lost = new Map<string, Loss>()

  /**
   * Answers whether that ends the loss. A source that may list but not watch gets a confirmation at each try, and a denial a moment later:
   * a reported denial is over when none has followed for a while.
   */
  confirmed(reference: ObjectReference, moment: Moment): boolean {
    const name = objectName(reference)
    this.#confirmed.set(name, moment)
    const loss = this.lossOf(reference, moment)
    const stays = loss?.denied === true && moment.monotonic - loss.since.monotonic >= lossGrace
    if (stays) this.#lost.set(name, { listed: moment, ...loss })
    else this.#lost.delete(name)
    return !stays
  }

  /** `lost`: the error that ended the watch. A loss is as old as its first error, and has the reason of its last. */
  restarted(reference: ObjectReference, reason: WatchRestartReason, moment: Moment, lost?: UnknownState): void {
    const name = objectName(reference)
    const earlier = this.lossOf(reference, moment)
    if (ordinary.has(reason) || (earlier !== undefined && lost === undefined)) return
    const denied = reason === 'unauthorized' || reason === 'denied'
    this.#lost.set(name, {
      reason: lost?.reason ?? (denied ? 'AccessDenied' : 'SourceUnavailable'),
      message: lost?.message,
      since: earlier?.since ?? moment,
      denied: reason === 'denied',
    })
  }

  lastConfirmed(reference: ObjectReference): Moment | undefined {
    return this.#confirmed.get(objectName(reference))
  }

  lossOf(reference: ObjectReference, moment: Moment): Loss | undefined {
    const loss = this.#lost.get(objectName(reference))
    const over = loss?.listed !== undefined && moment.monotonic - loss.listed.monotonic >= lossGrace
    return over ? undefined : loss
  }

  /** Forgets all others: what a selector matches comes and goes for as long as the agent runs. */
  keepOnly(references: Iterable<ObjectReference>): void {
    const names = new Set([...references].map(objectName))
    for (const known of [this.#confirmed, this.#lost]) {
      for (const name of known.keys()) if (!names.has(name)) known.delete(name)
    }
  }

  /** Another source knows nothing of what this one said. */
  clear(): void {
    this.#confirmed.clear()
    this.#lost.clear()
  }
}
