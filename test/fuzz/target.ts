/** A reader of untrusted bytes under test, and what must hold for every input. */
export interface Target<Reading = unknown> {
  readonly name: string
  /** Compiled files whose coverage is reported, below `dist/src`. */
  readonly files: readonly string[]
  /** Bytes of the longest input that a mutation makes. */
  readonly longest: number
  /** Texts that the reader compares its input with: no mutation of single bytes finds them. */
  readonly words: readonly string[]
  /**
   * The reader's answer to the input: `undefined` where it refuses it in order. Throws, for a finding, whatever it may not throw, and where a
   * rule of the target is broken.
   */
  readonly read: (input: Buffer) => Reading | undefined | Promise<Reading | undefined>
  /** The same input, read by the Go code that Kubernetes uses. */
  readonly go?: GoReading<Reading>
  /** Ends what the target has opened. */
  readonly close?: () => Promise<void>
}

interface GoReading<Reading> {
  /** What go-readings calls it. */
  readonly as: string
  /** Why the two readings contradict each other; undefined where they agree, or where the difference is meant. */
  readonly contradiction: (input: Buffer, ours: Reading | undefined, theirs: GoAnswer) => string | undefined
}

export interface GoAnswer {
  readonly error?: string
  readonly value?: unknown
}

/** A rule of the target is broken. */
export class Finding extends Error {
  override readonly name = 'Finding'
}

/** @throws Finding */
export function demand(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Finding(rule)
}
