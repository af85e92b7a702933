/**
 * How the watches of one source come back together after the API server was away.
 *
 * Each watch has its own backoff, up to half a minute. While none of them gets through, one that waits, the scout, is
 * sent ahead every two seconds or so; as soon as one gets through, all that wait for the server follow, spread at random.
 * So a server that is back is noticed quickly, and a server that is away is not hammered by every watch.
 */
import type { WatchTiming } from './timing.js'

export class Recovery {
  #open = 0
  #failing = false
  #scouting = false
  readonly #waiting = new Set<() => void>()

  constructor(
    private readonly timing: Pick<WatchTiming, 'scoutDelay' | 'wakeSpread'>,
    private readonly random: () => number,
  ) {}

  /** A request was answered as it should be: whoever waits for the server need not wait any longer. */
  succeeded(): void {
    this.#failing = false
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  /** @returns whether it is the first failure since the last success: the one that is worth a warning */
  failed(): boolean {
    const first = !this.#failing
    this.#failing = true
    return first
  }

  streamOpened(): void {
    this.#open += 1
  }

  streamClosed(): void {
    this.#open -= 1
  }

  /**
   * Waits before the next try. `forServer`: what is waited for is a server that is away, not something about one object.
   * Returns at once when the signal aborts, and soon after `cure` has resolved.
   */
  async wait(delay: number, forServer: boolean, signal: AbortSignal, cure?: Promise<void>): Promise<void> {
    if (!forServer) {
      const cured = await sleep(delay, signal, cure)
      if (cured) await sleep(this.random() * this.timing.wakeSpread, signal)
      return
    }
    const scout = this.#open === 0 && !this.#scouting
    if (scout) this.#scouting = true
    let wake: () => void = () => undefined
    const woken = new Promise<void>((resolve) => (wake = resolve))
    this.#waiting.add(wake)
    try {
      const longest = this.timing.scoutDelay * (0.5 + 0.5 * this.random())
      const early = await sleep(scout ? Math.min(delay, longest) : delay, signal, woken)
      if (early) await sleep(this.random() * this.timing.wakeSpread, signal)
    } finally {
      if (scout) this.#scouting = false
      this.#waiting.delete(wake)
    }
  }
}

/** Ends after the delay, when the signal aborts, or when `woken` resolves: then the result is true. */
function sleep(milliseconds: number, signal: AbortSignal, woken?: Promise<void>): Promise<boolean> {
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
