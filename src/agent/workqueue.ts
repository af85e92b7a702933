import { longestTimeout } from '../deadline.js'
import { retryDelay } from '../backoff.js'

/**
 * A keyed queue. A caller may rely on this: a key never runs twice at once; additions to a running key merge into one further run; a failed
 * key runs again after its delay; a waiting key runs again only after another addition; and news of a key wait for their time, while other
 * causes of the key do not wait for them.
 */

/** What a run made of a key: finished; failed, try again later; or hopeless until something changes. */
export type QueueResult = 'done' | 'retry' | 'wait'

export interface Due {
  /** Why: at least one cause, in the order in which they came. */
  readonly causes: readonly string[]
  /** Since when, by performance.now(). */
  readonly since: number
}

/** The keys of one group that are due. */
export type Batch = ReadonlyMap<string, Due>

/** What a key is at. Times are by performance.now(). */
export interface Pending {
  readonly key: string
  /** Runs; is due, and waits for others of its group; or waits for its next try, or for the time of its news. */
  readonly state: 'running' | 'due' | 'waiting'
  /** When the run began, or the key became due or began to wait. */
  readonly since: number
  /** From 1: how often it was tried in a row, with this time. */
  readonly attempt: number
  /** undefined: it runs, or will as soon as it can. */
  readonly nextTry: number | undefined
}

/** When news that are not served yet were added, first and last; by performance.now(). */
export interface NewsTimes {
  readonly first: number
  readonly last: number
}

export interface WorkqueueOptions {
  /**
   * Names each key's group, asked each time that runs start. All keys of a group that are due go into one run, and no other of the group
   * starts before it has ended; groups do not wait for one another.
   */
  groups(): (key: string) => string
  /**
   * A key that the answer leaves out counts as done. A rejection counts as `retry` for all of the batch. The key of a promise runs until that
   * has resolved, while its group is free for others; it never rejects.
   */
  run(batch: Batch, group: string): Promise<ReadonlyMap<string, QueueResult | Promise<QueueResult>>>
  /** Called with what `run` rejected with. */
  failed(error: unknown, batch: Batch): void
  /** From when on a key may run for such news, by performance.now(); asked each time that runs start. Absent: at once. */
  newsFrom?(key: string, times: NewsTimes): number
  /** From when on, by performance.now(), the key may run for these causes while its news wait. Default: at once. */
  besideNews?(key: string, times: NewsTimes, causes: ReadonlySet<string>): number
  /** Called when a key has failed and waits for its next try, or waits long for the time of its news: people may want to know when that is. */
  waits?(key: string): void
  /** Milliseconds until the next try after so many failures in a row. */
  readonly delay?: (failures: number) => number
}

interface News extends NewsTimes {
  readonly causes: ReadonlySet<string>
}

interface QueueEntry {
  causes: Set<string>
  since: number
  news: News | undefined
  failures: number
  running: boolean
  forgotten: boolean
  timer: NodeJS.Timeout | undefined
  /** When the last run began, and when it ended; by performance.now(). */
  began: number
  ended: number
  /** When the timer fires. */
  nextTry: number
}

/** Milliseconds: keys that become due so close together go out together. */
const together = 5

/** Milliseconds that a timer is late where something else has held the loop up, and for how many of them news wait again. */
const heldUp = 20
const longestHeldUp = 200

/** Milliseconds that news may wait before people want to know of it. */
const longWait = 2_000

export class Workqueue {
  readonly #options: WorkqueueOptions
  readonly #entries = new Map<string, QueueEntry>()
  /** What runs, by group. */
  readonly #runs = new Map<string, Promise<void>>()
  /** Work on single keys that goes on after the runs of their groups. */
  readonly #lasting = new Set<Promise<void>>()
  #turn: NodeJS.Immediate | undefined
  /** When the next news may run. */
  #newsTimer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: WorkqueueOptions) {
    this.#options = options
  }

  /** Makes the key due now, also where it was waiting for a later try: the cause may be the cure. */
  add(key: string, cause: string): void {
    if (this.#closed) return
    const entry = this.#entries.get(key) ?? this.#create(key)
    if (entry.causes.size === 0) entry.since = performance.now()
    entry.causes.add(cause)
    entry.forgotten = false
    clearTimeout(entry.timer)
    entry.timer = undefined
    this.#schedule()
  }

  /** Makes the key due as soon as `newsFrom` lets that be. It keeps its next try, which may come earlier. */
  addNews(key: string, cause: string): void {
    if (this.#closed) return
    const entry = this.#entries.get(key) ?? this.#create(key)
    const now = performance.now()
    const { first = now, causes = [] } = entry.news ?? {}
    const isNew = entry.news === undefined || entry.forgotten
    entry.news = { first, last: now, causes: new Set([...causes, cause]) }
    entry.forgotten = false
    if (isNew && this.#newsFrom(key, entry.news) > now + longWait) this.#options.waits?.(key)
    this.#schedule()
  }

  /** The key's news that wait for their time. */
  newsOf(key: string): NewsTimes | undefined {
    return this.#entries.get(key)?.news
  }

  /** Makes the key due now for its news. */
  hurry(key: string): void {
    const entry = this.#entries.get(key)
    if (entry?.news === undefined) return
    const { causes } = entry.news
    entry.news = undefined
    for (const cause of causes) this.add(key, cause)
  }

  /** Drops the key; a run in flight ends by itself. */
  forget(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    clearTimeout(entry.timer)
    entry.causes.clear()
    entry.news = undefined
    // A key that runs is remembered until it has ended, so that adding it again cannot run it twice at once.
    entry.forgotten = true
    if (!entry.running) this.#entries.delete(key)
  }

  /** The key is due or runs. */
  pending(key: string): boolean {
    const state = this.#at(key)?.state
    return state === 'running' || state === 'due'
  }

  /** The key is due, or waits: nothing need be added for it to be run again. */
  expects(key: string): boolean {
    const state = this.#at(key)?.state
    return state === 'due' || state === 'waiting'
  }

  /** The key has failed, and waits for its next try. */
  retries(key: string): boolean {
    return this.#entries.get(key)?.timer !== undefined
  }

  /** The keys that are due, run, or wait. */
  all(): Pending[] {
    return [...this.#entries.keys()].map((key) => this.#at(key)).filter((pending) => pending !== undefined)
  }

  #at(key: string): Pending | undefined {
    const entry = this.#entries.get(key)
    return entry && standingOf(key, entry, entry.news && this.#newsFrom(key, entry.news))
  }

  /** What goes out with others goes out a little earlier. */
  #newsFrom(key: string, news: NewsTimes): number {
    return Math.max(news.first, (this.#options.newsFrom?.(key, news) ?? -Infinity) - together)
  }

  /** Starts nothing any more; resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#closed = true
    clearImmediate(this.#turn)
    clearTimeout(this.#newsTimer)
    for (const entry of this.#entries.values()) clearTimeout(entry.timer)
    await Promise.all(this.#runs.values())
    await Promise.all(this.#lasting)
  }

  #create(key: string): QueueEntry {
    const entry: QueueEntry = {
      causes: new Set(),
      since: 0,
      news: undefined,
      failures: 0,
      running: false,
      forgotten: false,
      timer: undefined,
      began: 0,
      ended: 0,
      nextTry: 0,
    }
    this.#entries.set(key, entry)
    return entry
  }

  /** The keys that may run now; news of others wait for their time. */
  #due(): [string, QueueEntry][] {
    const now = performance.now()
    let next = Infinity
    const due = [...this.#entries].filter(([key, { causes, news, running }]) => {
      if (running) return false
      const from = news === undefined ? Infinity : this.#newsFrom(key, news)
      const beside = news && causes.size > 0 ? (this.#options.besideNews?.(key, news, causes) ?? now) : now
      for (const time of [from, beside]) if (time > now) next = Math.min(next, time)
      return (causes.size > 0 && beside <= now) || from <= now
    })
    clearTimeout(this.#newsTimer)
    if (next !== Infinity) this.#wake(Math.min(next - now + 1, longestTimeout))
    return due
  }

  /**
   * Looks at the news again after so many milliseconds. A loop that was held up runs its timers before it reads its sockets, which may
   * hold the other half of a change: so news wait as long again.
   */
  #wake(delay: number): void {
    const wanted = performance.now() + delay
    this.#newsTimer = setTimeout(() => {
      const late = performance.now() - wanted
      if (late <= heldUp) this.#schedule()
      else this.#newsTimer = setTimeout(() => this.#schedule(), Math.min(late, longestHeldUp))
    }, delay)
  }

  /** One turn of the loop later, so that what comes in together goes out together. */
  #schedule(): void {
    this.#turn ??= setImmediate(() => {
      this.#turn = undefined
      this.#start()
    })
  }

  #start(): void {
    if (this.#closed) return
    const due = this.#due()
    if (due.length === 0) return
    for (const [group, entries] of this.#grouped(due)) {
      const run = this.#execute(group, entries).finally(() => {
        this.#runs.delete(group)
        if (!this.#closed) this.#schedule()
      })
      this.#runs.set(group, run)
    }
  }

  /** Those of each group that has no run. */
  #grouped(due: [string, QueueEntry][]): Map<string, [string, QueueEntry][]> {
    const groupOf = this.#options.groups()
    const groups = new Map<string, [string, QueueEntry][]>()
    for (const [key, entry] of due) {
      const group = groupOf(key)
      if (!this.#runs.has(group)) groups.set(group, [...(groups.get(group) ?? []), [key, entry]])
    }
    return groups
  }

  async #execute(group: string, entries: [string, QueueEntry][]): Promise<void> {
    for (const [key, entry] of entries) this.#takeNews(key, entry)
    const batch = batchOf(entries)
    for (const [, entry] of entries) {
      entry.causes = new Set()
      clearTimeout(entry.timer)
      entry.timer = undefined
      entry.running = true
      entry.began = performance.now()
    }
    let results: ReadonlyMap<string, QueueResult | Promise<QueueResult>>
    try {
      results = await this.#options.run(batch, group)
    } catch (error) {
      this.#options.failed(error, batch)
      results = new Map([...batch.keys()].map((key) => [key, 'retry']))
    }
    for (const [key, entry] of entries) {
      const result = results.get(key) ?? 'done'
      if (typeof result === 'string') this.#finish(key, entry, result)
      else this.#finishLater(key, entry, result)
    }
  }

  #finishLater(key: string, entry: QueueEntry, result: Promise<QueueResult>): void {
    const finishing = result.then((ended) => {
      this.#lasting.delete(finishing)
      this.#finish(key, entry, ended)
      if (!this.#closed) this.#schedule()
    })
    this.#lasting.add(finishing)
  }

  /** News whose time has not come stay. */
  #takeNews(key: string, entry: QueueEntry): void {
    const { news, causes } = entry
    if (news === undefined) return
    const from = this.#newsFrom(key, news)
    if (from > performance.now()) return
    if (causes.size === 0) entry.since = from
    for (const cause of news.causes) causes.add(cause)
    entry.news = undefined
  }

  #finish(key: string, entry: QueueEntry, result: QueueResult): void {
    entry.running = false
    entry.ended = performance.now()
    entry.failures = result === 'retry' ? entry.failures + 1 : 0
    if (entry.forgotten) this.#entries.delete(key)
    // An addition meanwhile makes it due at once.
    if (result !== 'retry' || entry.forgotten || entry.causes.size > 0 || this.#closed) return
    const delay = (this.#options.delay ?? retryDelay)(entry.failures)
    entry.nextTry = entry.ended + delay
    entry.timer = setTimeout(() => this.add(key, 'retry'), delay)
    this.#options.waits?.(key)
  }
}

function batchOf(entries: readonly [string, QueueEntry][]): Batch {
  return new Map(entries.map(([key, { causes, since }]) => [key, { causes: [...causes], since }]))
}

function standingOf(key: string, entry: QueueEntry, newsFrom: number | undefined): Pending | undefined {
  const { running, causes, timer, failures, news } = entry
  const attempt = failures + 1
  if (running) return { key, state: 'running', since: entry.began, attempt, nextTry: undefined }
  if (causes.size > 0) return { key, state: 'due', since: entry.since, attempt, nextTry: undefined }
  if (newsFrom !== undefined && newsFrom <= performance.now())
    return { key, state: 'due', since: newsFrom, attempt, nextTry: undefined }
  const retry = timer && { since: entry.ended, nextTry: entry.nextTry }
  const wait = news && newsFrom !== undefined ? { since: news.first, nextTry: newsFrom } : retry
  const next = retry !== undefined && wait !== undefined && retry.nextTry < wait.nextTry ? retry : wait
  return next && { key, state: 'waiting', attempt, ...next }
}
