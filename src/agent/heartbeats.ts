import { describeReference, type ObjectReference, type WatchRestartReason } from '../objects/types.js'
import type { Reason } from '../reasons.js'

/** A point in time: `monotonic` to measure with, since the wall clock may step; `wall` to show. */
export interface Moment {
  /** performance.now(). */
  readonly monotonic: number
  readonly wall: Date
}

export const now = (): Moment => ({ monotonic: performance.now(), wall: new Date() })

/** The watch of an object was lost, and the source has said nothing of the object since. */
interface Loss {
  readonly reason: Reason
  readonly since: Moment
}

/** These end a watch in the ordinary course: it starts again at once, and nothing was missed. */
const ordinary: ReadonlySet<WatchRestartReason> = new Set(['timeout', 'expired', 'goaway'])

/** When the source last said that what it reported of an object is current, and whether it may have lost sight of it since. */
export class Heartbeats {
  readonly #confirmed = new Map<string, Moment>()
  readonly #lost = new Map<string, Loss>()

  confirmed(reference: ObjectReference, moment: Moment): void {
    const name = describeReference(reference)
    this.#confirmed.set(name, moment)
    this.#lost.delete(name)
  }

  restarted(reference: ObjectReference, reason: WatchRestartReason, since: Moment): void {
    const name = describeReference(reference)
    if (ordinary.has(reason) || this.#lost.has(name)) return
    const denied = reason === 'unauthorized' || reason === 'denied'
    this.#lost.set(name, { reason: denied ? 'AccessDenied' : 'SourceUnavailable', since })
  }

  lastConfirmed(reference: ObjectReference): Moment | undefined {
    return this.#confirmed.get(describeReference(reference))
  }

  lossOf(reference: ObjectReference): Loss | undefined {
    return this.#lost.get(describeReference(reference))
  }

  /** Another source knows nothing of what this one said. */
  clear(): void {
    this.#confirmed.clear()
    this.#lost.clear()
  }
}
