/**
 * How the watches of one source come back together after the API server was away.
 *
 * Each watch has its own backoff, up to half a minute. While none of them gets through, one waiting watch, the scout, tries ahead
 * every two seconds or so; as soon as one gets through, all that wait for the server follow, spread at random over a time that grows
 * with their number. A watch gets through with an event, a bookmark, or ten seconds: a server whose store is ill answers 200 as well.
 * So a server that is back is noticed quickly, and a server that is away is not hammered by every watch.
 */
import type { WatchTiming } from './timing.js'

export class Recovery {
  #open = 0
  /** The causes of this outage so far. */
  readonly #causes = new Set<string>()
  #scouting = false
  #endsEarly = false
  /** Each, with the time of its failure, is called with the milliseconds within which it may follow. */
  readonly #waiting = new Map<(spread: number) => void, number>()

  constructor(
    private readonly timing: Pick<WatchTiming, 'scoutDelay' | 'wakeSpread' | 'wakeInterval'>,
    private readonly random: () => number,
  ) {}

  /** A watch that was answered at this time, by performance.now(), got through: those that had failed by then need not wait any longer. */
  succeeded(answeredAt: number): void {
    const { wakeSpread, wakeInterval } = this.timing
    const spread = Math.max(wakeSpread, this.#waiting.size * wakeInterval)
    for (const [wake, failedAt] of this.#waiting) if (failedAt <= answeredAt) wake(spread)
  }

  /** A watch that had failed has lasted since: the outage is over. */
  lasted(): void {
    this.#causes.clear()
  }

  /** @returns whether this is the first failure of this cause in this outage, and so worth a warning */
  failed(cause: string): boolean {
    const first = !this.#causes.has(cause)
    this.#causes.add(cause)
    return first
  }

  /** @returns whether it is the first watch that ended in order before its time: the one that is worth a line in the log */
  endedEarly(): boolean {
    const first = !this.#endsEarly
    this.#endsEarly = true
    return first
  }

  streamOpened(): void {
    this.#open += 1
  }

  streamClosed(): void {
    this.#open -= 1
  }

  /** Waits before the next try: less where the signal aborts, or soon after `cure` has resolved. */
  async wait(delay: number, signal: AbortSignal, cure?: Promise<void>): Promise<void> {
    const cured = await sleepOrWake(delay, signal, cure)
    if (cured) await sleepOrWake(this.random() * this.timing.wakeSpread, signal)
  }

  /**
   * Waits before the next try for the thing that all watches lack: a server that is away, or credentials. `scouting`: while none gets
   * through, one of them tries sooner than its own delay says.
   * @returns whether another watch that got through ended the wait
   */
  async waitForServer(delay: number, signal: AbortSignal, { scouting = true } = {}): Promise<boolean> {
    const scout = scouting && this.#open === 0 && !this.#scouting
    if (scout) this.#scouting = true
    let spread = 0
    let wake: (spread: number) => void = () => undefined
    const woken = new Promise<void>((resolve) => {
      wake = (within) => {
        spread = within
        resolve()
      }
    })
    this.#waiting.set(wake, performance.now())
    try {
      const longest = this.timing.scoutDelay * (0.5 + 0.5 * this.random())
      const early = await sleepOrWake(scout ? Math.min(delay, longest) : delay, signal, woken)
      if (early) await sleepOrWake(this.random() * spread, signal)
      return early
    } finally {
      if (scout) this.#scouting = false
      this.#waiting.delete(wake)
    }
  }
}

/** Ends after the delay, when the signal aborts, or when `woken` resolves: then the result is true. */
function sleepOrWake(milliseconds: number, signal: AbortSignal, woken?: Promise<void>): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (early: boolean) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      resolve(early)
    }
    const abort = () => end(false)
    const timer = setTimeout(end, milliseconds, false)
    signal.addEventListener('abort', abort)
    if (signal.aborted) end(false)
    void woken?.then(() => end(true))
  })
}
