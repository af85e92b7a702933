import { delayAfter } from '../backoff.js'

/** The agent picks up a repair by hand within two minutes. */
const delays = { firstDelay: 500, longestDelay: 120_000 }

/** Milliseconds until the agent tries again after so many failures in a row. */
export function retryDelay(failures: number, random?: () => number): number {
  return delayAfter(failures, delays, random)
}
