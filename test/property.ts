/** Properties that hold for all inputs of fast-check, which shrinks a counterexample to the least one. */
import fc from 'fast-check'
import type { Test } from 'tap'
import { replaying, seed } from './seed.js'

/** The seed that every run begins with, so that two runs of one program find the same; a new one follows. */
const fixedSeed = 1

export interface Extent {
  /** Cases for each seed. */
  readonly runs?: number
}

/**
 * Asserts that the property holds, from the fixed seed and from a new one; with HOLDFAST_SEED, from that one alone. The property
 * throws, or answers false, for a case that breaks it.
 */
export async function holds(
  t: Test,
  rule: string,
  property: fc.IRawProperty<unknown>,
  { runs = 200 }: Extent = {},
): Promise<void> {
  for (const from of replaying ? [seed] : [fixedSeed, seed]) {
    const details = await fc.check(property, { seed: from, numRuns: runs, endOnFailure: false })
    const broken = details.failed ? `HOLDFAST_SEED=${from} replays this: ${report(details)}` : undefined
    t.equal(broken, undefined, `${rule} (${runs} cases, HOLDFAST_SEED=${from})`)
  }
}

function report({ counterexample, errorInstance, numShrinks }: fc.RunDetails<unknown>): string {
  const why = errorInstance instanceof Error ? errorInstance.message : String(errorInstance)
  return `${fc.stringify(counterexample)}, after ${numShrinks} shrinks: ${why}`
}
