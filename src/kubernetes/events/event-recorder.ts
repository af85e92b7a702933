/**
 * Reports to the cluster what happens, as events. A caller may rely on this: `record` returns at once and throws nothing, and the API
 * server cannot hold the caller up. Events that cannot go now wait, up to a limit; one request runs at a time, over the connection that
 * the watches have.
 */
import { sleep } from '../../deadline.js'
import type { Log } from '../../log.js'
import { Backoff } from '../../backoff.js'
import type { ApiClient, ApiResponse } from '../connection/client.js'
import { eventBody, eventsPath, eventNamespace, seriesBody, type EventDraft, eventName } from './event-body.js'
import { statusMessage, unsentAdvice } from '../reads/api-error.js'
import { objectName } from '../../message-text.js'

/*
 * Decides which occurrences make an event, and which only count: the same news within a while is one event with a count, and no
 * object gets more than a trickle. The same rules as client-go's (tools/record/events_cache.go; tools/events).
 */

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

/** Events that wait at most; of more, the oldest are dropped. */
const longestQueue = 100

const controller = 'holdfast.dev/agent'

/** Milliseconds. */
const requestTimeout = 10_000
const backoff = { firstDelay: 1_000, longestDelay: 60_000 }
/** An API server that has just started denies every request, until it has read its roles. */
const denialGrace = 10_000
/** The recorder tries a namespace that denies events again this seldom: its user may mend the Role meanwhile. */
const denialPause = 10 * 60_000

export interface EventClock {
  now(): Instant
  /** Resolves after so many milliseconds, or when the signal aborts. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
}

export const realClock: EventClock = {
  now: () => ({ monotonic: performance.now(), wall: new Date() }),
  sleep: (milliseconds, signal) => sleep(milliseconds, { signal, ref: false }).catch(() => undefined),
}

export interface EventRecorderOptions {
  readonly log: Log
  /** The sender: the node, or the host. */
  readonly instance: string
  readonly clock?: EventClock
  /** In [0, 1); default Math.random. */
  readonly random?: () => number
}

interface Denial {
  /** Monotonic; the recorder sends nothing there before. */
  until: number
  reported: boolean
}

export class EventRecorder {
  readonly #clock: EventClock
  readonly #series = new EventSeries()
  readonly #backoff: Backoff
  readonly #denials = new Map<string, Denial>()
  #queue: EventRecord[] = []
  #lost = 0
  #isSending = false
  #sending: Promise<void> | undefined
  #closing = false
  /** Ends a wait before the next try. */
  readonly #hurry = new AbortController()
  /** Ends the request that is under way. */
  readonly #abort = new AbortController()

  constructor(
    private readonly api: Pick<ApiClient, 'send'>,
    private readonly options: EventRecorderOptions,
  ) {
    this.#clock = options.clock ?? realClock
    this.#backoff = new Backoff(backoff, options.random ?? Math.random)
  }

  record(draft: EventDraft): void {
    if (this.#closing) return
    const record = this.#series.take(draft, this.#clock.now())
    if (record === undefined) return
    this.#queue.push(record)
    record.queued = true
    this.#shorten()
    if (!this.#isSending) this.#sending = this.#send()
  }

  /** An administrator may have granted the right by now: the next event tries again. */
  retryDenied(): void {
    this.#denials.clear()
  }

  /** Takes nothing more, and sends what waits, within so many milliseconds. */
  async close(within: number): Promise<void> {
    this.#closing = true
    this.#hurry.abort()
    const timer = setTimeout(() => this.#abort.abort(new Error('the agent is ending')), within)
    await this.#sending
    clearTimeout(timer)
    const unsent = this.#queue.length + this.#lost
    if (unsent > 0) {
      this.options.log.warn({ unsent }, `${unsent} events could not be sent before the agent stopped`)
    }
  }

  #shorten(): void {
    while (this.#queue.length > longestQueue) {
      const oldest = this.#queue.shift()
      if (oldest) oldest.queued = false
      this.#lost += 1
    }
  }

  async #send(): Promise<void> {
    this.#isSending = true
    try {
      for (let record = this.#next(); record !== undefined; record = this.#next()) {
        const delay = await this.#sendOne(record)
        if (delay === undefined) continue
        // It may have come again meanwhile.
        this.#queue = [record, ...this.#queue.filter((other) => other !== record)]
        record.queued = true
        this.#shorten()
        // At the end there is one try, and no more.
        if (this.#closing) return
        await this.#clock.sleep(delay, this.#hurry.signal)
      }
    } finally {
      this.#isSending = false
    }
  }

  #next(): EventRecord | undefined {
    const record = this.#queue.shift()
    if (record) record.queued = false
    return record
  }

  /** @returns milliseconds until it must be tried again; undefined: it is sent, or dropped */
  async #sendOne(record: EventRecord): Promise<number | undefined> {
    const namespace = eventNamespace(record.draft.subject)
    const denial = this.#denials.get(namespace)
    if (denial !== undefined && denial.reported && this.#clock.now().monotonic < denial.until) return undefined
    const { count } = record
    let answer: ApiResponse
    try {
      answer = await this.#request(record, namespace)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      this.options.log.debug({ waiting: this.#queue.length + 1 }, `an event could not be sent: ${message}`)
      return this.#backoff.next('away')
    }
    const { status } = answer
    if (status === 401 || status === 429 || status >= 500) {
      return Math.max(this.#backoff.next('away'), Math.min(answer.retryAfter ?? 0, backoff.longestDelay))
    }
    this.#backoff.reset()
    if (status === 403) return this.#denied(namespace, answer)
    this.#denials.delete(namespace)
    this.#tellLost()
    if (status === 404 && record.sent > 0) {
      // The API server keeps events for an hour or so: make this one again.
      record.sent = 0
      return this.#sendOne(record)
    }
    // 409: a request whose answer was lost has made it.
    if (status < 300 || status === 409) record.sent = status === 409 ? 1 : count
    else this.#refused(record, answer)
    return undefined
  }

  #request(record: EventRecord, namespace: string): Promise<ApiResponse> {
    const { draft, name, firstAt, lastAt, count, sent } = record
    const path = eventsPath(namespace)
    const options = { timeout: requestTimeout, signal: this.#abort.signal }
    const series = count > 1 ? { count, lastAt } : undefined
    if (sent > 0 && series) {
      const body = { series: seriesBody(series) }
      return this.api.send('PATCH', `${path}/${encodeURIComponent(name)}`, body, options)
    }
    const body = eventBody(draft, name, firstAt, { controller, instance: this.options.instance }, series)
    return this.api.send('POST', path, body, options)
  }

  #denied(namespace: string, answer: ApiResponse): number | undefined {
    const now = this.#clock.now().monotonic
    const denial = this.#denials.get(namespace)
    this.#denials.set(namespace, { until: now + denialPause, reported: denial !== undefined })
    if (denial === undefined) return denialGrace
    if (!denial.reported) {
      const said = statusMessage(answer.body)
      this.options.log.warn(
        { namespace, status: answer.status },
        `no right to create events in namespace ${namespace}${said && ` (${said})`}: the agent sends none there, everything else works; ${unsentAdvice(answer) ?? '"holdfast rbac" prints the Role that allows them'}`,
      )
    }
    return undefined
  }

  #refused({ draft: { reason } }: EventRecord, { status, body }: ApiResponse): void {
    this.options.log.warn({ event: reason, status }, `the API server refused an event: ${statusMessage(body)}`)
  }

  #tellLost(): void {
    if (this.#lost === 0) return
    this.options.log.warn(
      { lost: this.#lost },
      `the agent dropped ${this.#lost} events: the API server was away, or took them more slowly than they came`,
    )
    this.#lost = 0
  }
}

/** A point in time: to measure with, since the wall clock may step, and to show. */
interface Instant {
  /** performance.now(). */
  readonly monotonic: number
  readonly wall: Date
}

/** One event at the API server, or on its way there. */
interface EventRecord {
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

interface Bucket {
  tokens: number
  at: number
}

class EventSeries {
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
