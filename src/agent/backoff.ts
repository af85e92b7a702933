import { delayAfter } from '../backoff.js'

/** What was mended by hand is picked up within two minutes. */
const delays = { firstDelay: 500, longestDelay: 120_000 }

/** Milliseconds until the agent tries again what has failed so many times in a row. */
export function retryDelay(failures: number, random?: () => number): number {
  return delayAfter(failures, delays, random)
}
