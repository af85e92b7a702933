/** The agent picks up a repair by hand within two minutes. */
const delays = { firstDelay: 500, longestDelay: 120_000 }

/** In milliseconds. */
export interface Delays {
  readonly firstDelay: number
  readonly longestDelay: number
}

/**
 * Milliseconds to wait after so many failures in a row, at least one: the first delay, doubling to the longest, each at random between its
 * half and its whole, so that the nodes of a cluster do not come back in step. `random` is in [0, 1).
 * @internal
 */
function delayAfter(
  failures: number,
  { firstDelay, longestDelay }: Delays,
  random: () => number = Math.random,
): number {
  // 2^30 is far beyond any longest delay: the exponent is bounded so that it can never overflow.
  const whole = Math.min(longestDelay, firstDelay * 2 ** Math.min(failures - 1, 30))
  return whole * (0.5 + 0.5 * random())
}

/** Counts failures: a failure of another kind starts from the first delay, since it waits for another repair. */
export class Backoff {
  #kind: string | undefined
  #failures = 0

  constructor(
    private readonly delays: Delays,
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
    return delayAfter(this.#failures, this.delays, this.random)
  }

  reset(): void {
    this.#kind = undefined
    this.#failures = 0
  }
}

/** Milliseconds until the agent tries again after so many failures in a row. */
export function retryDelay(failures: number, random?: () => number): number {
  return delayAfter(failures, delays, random)
}
