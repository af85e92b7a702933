/** The first delay after a failure, in milliseconds; each further one doubles it. */
const firstDelay = 500

/** No delay is longer, in milliseconds: what was mended by hand is picked up within two minutes. */
const longestDelay = 120_000

/**
 * Milliseconds to wait after `failures` failures in a row (at least 1): 0.5 s, 1 s, 2 s … 2 min, each within a fifth of that, so
 * that the nodes of a cluster do not come back in step. `random` is in [0, 1).
 */
export function retryDelay(failures: number, random: () => number = Math.random): number {
  // 2^30 is far beyond the longest delay: the exponent is bounded so that it can never overflow.
  const nominal = Math.min(firstDelay * 2 ** Math.min(failures - 1, 30), longestDelay)
  return Math.min(Math.round(nominal * (0.8 + 0.4 * random())), longestDelay)
}
