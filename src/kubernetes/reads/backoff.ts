import type { WatchTiming } from '../../objects/kubernetes/timing.js'

/**
 * Delays between tries: `firstDelay` doubling to `longestDelay`, each at random between its half and its full length, so that the
 * nodes of a cluster do not come back in step. A failure of another kind starts from the first delay: what it waits for is something else.
 */
export class Backoff {
  #kind: string | undefined
  #failures = 0

  constructor(
    private readonly timing: Pick<WatchTiming, 'firstDelay' | 'longestDelay'>,
    private readonly random: () => number,
  ) {}

  /** Failures of this kind in a row, so far. */
  failures(kind: string): number {
    return kind === this.#kind ? this.#failures : 0
  }

  /** Milliseconds to wait after one more failure of this kind. */
  next(kind: string): number {
    this.#failures = this.failures(kind) + 1
    this.#kind = kind
    const { firstDelay, longestDelay } = this.timing
    // 2^30 is far beyond any longest delay: the exponent is bounded so that it can never overflow.
    const full = Math.min(longestDelay, firstDelay * 2 ** Math.min(this.#failures - 1, 30))
    return full * (0.5 + 0.5 * this.random())
  }

  reset(): void {
    this.#kind = undefined
    this.#failures = 0
  }
}
