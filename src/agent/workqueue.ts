import { retryDelay } from './backoff.js'

/**
 * A keyed queue. A caller may rely on this: a key never runs twice at once; additions to a running key merge into one further run; a failed
 * key runs again after its delay; a waiting key runs again only after another addition.
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
  /** Runs; is due, and waits for others of its group; or waits for its next try. */
  readonly state: 'running' | 'due' | 'waiting'
  /** When the run began, or the key became due or began to wait. */
  readonly since: number
  /** From 1: how often it was tried in a row, with this time. */
  readonly attempt: number
  /** undefined: it runs, or will as soon as it can. */
  readonly nextTry: number | undefined
}

export interface WorkqueueOptions {
  /**
   * Names each key's group, asked each time that runs start. All keys of a group that are due go into one run, and no other of the group
   * starts before it has ended; groups do not wait for one another. Keys stay due where it throws, and come again after a delay.
   */
  groups(): (key: string) => string
  /** A key that the answer leaves out counts as done. A rejection counts as `retry` for all of the batch. */
  run(batch: Batch, group: string): Promise<ReadonlyMap<string, QueueResult>>
  /** Called with what `groups` threw or `run` rejected with. */
  failed(error: unknown, batch: Batch): void
  /** Called when a key has failed and waits for its next try: people may want to know when that is. */
  waits?(key: string): void
  /** Milliseconds until the next try after so many failures in a row. */
  readonly delay?: (failures: number) => number
}

interface Entry {
  causes: Set<string>
  since: number
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

export class Workqueue {
  readonly #options: WorkqueueOptions
  readonly #entries = new Map<string, Entry>()
  /** What runs, by group. */
  readonly #runs = new Map<string, Promise<void>>()
  #turn: NodeJS.Immediate | undefined
  /** How often in a row the groups could not be named, and the next try. */
  #failures = 0
  #later: NodeJS.Timeout | undefined
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

  /** Drops the key; a run in flight ends by itself. */
  forget(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    clearTimeout(entry.timer)
    entry.causes.clear()
    // A key that runs is remembered until it has ended, so that adding it again cannot run it twice at once.
    entry.forgotten = true
    if (!entry.running) this.#entries.delete(key)
  }

  /** The key is due or runs. */
  pending(key: string): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && (entry.running || entry.causes.size > 0)
  }

  /** The key is due, runs, or waits for its next try: nothing need be added for it to be run again. */
  expects(key: string): boolean {
    return this.pending(key) || this.#entries.get(key)?.timer !== undefined
  }

  /** The keys that are due, run, or wait for their next try. */
  all(): Pending[] {
    return [...this.#entries].map(([key, entry]) => pendingOf(key, entry)).filter((pending) => pending !== undefined)
  }

  /** Starts nothing any more; resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#closed = true
    clearImmediate(this.#turn)
    clearTimeout(this.#later)
    for (const entry of this.#entries.values()) clearTimeout(entry.timer)
    await Promise.all(this.#runs.values())
  }

  #create(key: string): Entry {
    const entry: Entry = {
      causes: new Set(),
      since: 0,
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

  #due(): [string, Entry][] {
    return [...this.#entries].filter(([, entry]) => entry.causes.size > 0 && !entry.running)
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
    let groups: Map<string, [string, Entry][]>
    try {
      groups = this.#grouped(due)
    } catch (error) {
      this.#failures += 1
      this.#options.failed(error, batchOf(due))
      clearTimeout(this.#later)
      this.#later = setTimeout(() => this.#schedule(), this.#delay(this.#failures))
      return
    }
    this.#failures = 0
    for (const [group, entries] of groups) {
      const run = this.#execute(group, entries).finally(() => {
        this.#runs.delete(group)
        if (!this.#closed) this.#schedule()
      })
      this.#runs.set(group, run)
    }
  }

  /** Those of each group that has no run. */
  #grouped(due: [string, Entry][]): Map<string, [string, Entry][]> {
    const groupOf = this.#options.groups()
    const groups = new Map<string, [string, Entry][]>()
    for (const [key, entry] of due) {
      const group = groupOf(key)
      if (!this.#runs.has(group)) groups.set(group, [...(groups.get(group) ?? []), [key, entry]])
    }
    return groups
  }

  async #execute(group: string, entries: [string, Entry][]): Promise<void> {
    const batch = batchOf(entries)
    for (const [, entry] of entries) {
      entry.causes = new Set()
      entry.running = true
      entry.began = performance.now()
    }
    let results: ReadonlyMap<string, QueueResult>
    try {
      results = await this.#options.run(batch, group)
    } catch (error) {
      this.#options.failed(error, batch)
      results = new Map([...batch.keys()].map((key) => [key, 'retry']))
    }
    for (const [key, entry] of entries) this.#finish(key, entry, results.get(key) ?? 'done')
  }

  #finish(key: string, entry: Entry, result: QueueResult): void {
    entry.running = false
    entry.ended = performance.now()
    entry.failures = result === 'retry' ? entry.failures + 1 : 0
    if (entry.forgotten) this.#entries.delete(key)
    // An addition meanwhile makes it due at once.
    if (result !== 'retry' || entry.forgotten || entry.causes.size > 0 || this.#closed) return
    const delay = this.#delay(entry.failures)
    entry.nextTry = entry.ended + delay
    entry.timer = setTimeout(() => this.add(key, 'retry'), delay)
    this.#options.waits?.(key)
  }

  #delay(failures: number): number {
    return (this.#options.delay ?? retryDelay)(failures)
  }
}

function batchOf(entries: readonly [string, Entry][]): Batch {
  return new Map(entries.map(([key, { causes, since }]) => [key, { causes: [...causes], since }]))
}

function pendingOf(key: string, { running, causes, timer, failures, ...entry }: Entry): Pending | undefined {
  const attempt = failures + 1
  if (running) return { key, state: 'running', since: entry.began, attempt, nextTry: undefined }
  if (causes.size > 0) return { key, state: 'due', since: entry.since, attempt, nextTry: undefined }
  if (timer === undefined) return undefined
  return { key, state: 'waiting', since: entry.ended, attempt, nextTry: entry.nextTry }
}
