import type { DirectoryState } from './directory-state.js'

interface Running {
  readonly states: readonly DirectoryState[]
  /** By performance.now(); later by the time of pauses. */
  since: number
  timer: NodeJS.Timeout | undefined
  /** Until it counts as lasting. */
  soon: NodeJS.Timeout | undefined
  /** Of its directories. */
  paused: number
  /** By performance.now(). */
  pausedAt: number
}

interface RunningOperationsOptions {
  /** Milliseconds after which an operation is reported. */
  timeout(): number
  /** Called once for each directory of an operation that has not ended in time. It goes on: nothing can end it. */
  stalled(state: DirectoryState, milliseconds: number): void
  /** Called for an operation that has not ended for a while, so that the status shows it. */
  lasting(): void
  /** Milliseconds of that while. */
  readonly lastingAfter?: number
  /** Nothing is reported any more once it is aborted. */
  readonly signal: AbortSignal
}

/** Milliseconds. */
const usuallyEnded = 2_000

/** Which operations work on the disk now, and since when. */
export class RunningOperations {
  readonly #running = new Set<Running>()

  constructor(private readonly options: RunningOperationsOptions) {
    const close = (): void => this.#running.forEach(stopWatching)
    options.signal.addEventListener('abort', close, { once: true })
  }

  /** Runs `work` as one operation of these directories. */
  async run<T>(states: readonly DirectoryState[], work: () => Promise<T>): Promise<T> {
    const running: Running = {
      states,
      since: performance.now(),
      timer: undefined,
      soon: undefined,
      paused: 0,
      pausedAt: 0,
    }
    this.#running.add(running)
    this.#watch(running)
    try {
      return await work()
    } finally {
      stopWatching(running)
      this.#running.delete(running)
    }
  }

  /** Runs work that an operation of this directory waits for and that has another time limit: its time does not count as the disk's. */
  async pause<T>(state: DirectoryState, work: () => Promise<T>): Promise<T> {
    const waiting = [...this.#running].filter(({ states }) => states.includes(state))
    for (const running of waiting) {
      stopWatching(running)
      if (running.paused === 0) running.pausedAt = performance.now()
      running.paused += 1
    }
    try {
      return await work()
    } finally {
      for (const running of waiting) {
        running.paused -= 1
        if (running.paused > 0) continue
        running.since += performance.now() - running.pausedAt
        if (this.#running.has(running)) this.#watch(running)
      }
    }
  }

  #watch(running: Running): void {
    if (this.options.signal.aborted) return
    const timeout = this.options.timeout()
    running.soon = setTimeout(() => this.options.lasting(), this.options.lastingAfter ?? usuallyEnded)
    running.timer = setTimeout(() => {
      for (const state of running.states) this.options.stalled(state, timeout)
    }, timeout)
  }

  /** How long the longest operation of a directory has been running; 0: none is. */
  seconds(state: DirectoryState): number {
    const now = performance.now()
    const own = [...this.#running].filter(({ states }) => states.includes(state))
    return Math.max(0, ...own.map(({ since, paused, pausedAt }) => (paused > 0 ? pausedAt : now) - since)) / 1000
  }

  /** The directories whose operations have not ended. */
  directories(): DirectoryState[] {
    return [...new Set([...this.#running].flatMap(({ states }) => states))]
  }
}

function stopWatching({ timer, soon }: Running): void {
  clearTimeout(timer)
  clearTimeout(soon)
}
