/*
 * Decides which occurrences make an event, and which only count: the same news within a while is one event with a count, and no
 * object gets more than a trickle. The same rules as client-go's (tools/record/events_cache.go; tools/events).
 */
import { objectName } from '../../object-name.js'
import { eventName, type EventDraft } from './event-body.js'

/** A point in time: to measure with, since the wall clock may step, and to show. */
export interface Instant {
  /** performance.now(). */
  readonly monotonic: number
  readonly wall: Date
}

/** One event at the API server, or on its way there. */
export interface EventRecord {
  readonly draft: EventDraft
  readonly name: string
  readonly firstAt: Date
  lastAt: Date
  count: number
  /** The count that the API server knows; 0: the event has not been made. */
  sent: number
  /** It waits to be sent. */
  queued: boolean
}

/**
 * Milliseconds without a recurrence after which the same is another event. Longer than the ten minutes between two comparisons
 * of the disk, so that an error which stays is one event whose count grows.
 */
const seriesWindow = 15 * 60_000

/** client-go's: 25 at once, then one in five minutes, for each object and type: many publications cannot hide a warning. */
const burst = 25
const refill = 300_000

/** Series that are remembered; of more, the ones that were quiet for longest become new events when they recur. */
const mostSeries = 256

interface Bucket {
  tokens: number
  at: number
}

export class EventSeries {
  readonly #records = new Map<string, { readonly record: EventRecord; seenAt: number }>()
  readonly #buckets = new Map<string, Bucket>()

  /** The event to be sent now, or again with its new count; undefined: it is only counted, or there were too many. */
  take(draft: EventDraft, { monotonic, wall }: Instant): EventRecord | undefined {
    this.#forget(monotonic)
    const key = keyOf(draft)
    const known = this.#records.get(key)
    const record = known?.record ?? newRecord(draft, wall)
    record.count += 1
    record.lastAt = wall
    // The map is in the order in which they were last seen.
    this.#records.delete(key)
    this.#records.set(key, { record, seenAt: monotonic })
    if (record.queued || !this.#allowed(draft, monotonic)) return undefined
    return record
  }

  #allowed({ subject, type }: EventDraft, now: number): boolean {
    const key = `${type} ${objectName(subject)}`
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now }
    const tokens = Math.min(burst, bucket.tokens + (now - bucket.at) / refill)
    const allowed = tokens >= 1
    this.#buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, at: now })
    return allowed
  }

  /** Drops records whose series is over, and buckets that are full again. */
  #forget(now: number): void {
    for (const [key, { seenAt }] of this.#records) {
      if (now - seenAt < seriesWindow && this.#records.size < mostSeries) break
      this.#records.delete(key)
    }
    for (const [key, { tokens, at }] of this.#buckets) {
      if (tokens + (now - at) / refill >= burst) this.#buckets.delete(key)
    }
  }
}

function newRecord(draft: EventDraft, wall: Date): EventRecord {
  const name = eventName(draft.subject.name)
  return { draft, name, firstAt: wall, lastAt: wall, count: 0, sent: 0, queued: false }
}

function keyOf({ subject, type, reason, action, note }: EventDraft): string {
  return JSON.stringify([objectName(subject), subject.uid, type, reason, action, note])
}
