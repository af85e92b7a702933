/** Mutants that no test can tell from the program, each with its reason. */
export interface Equivalent {
  readonly reason: string
  /** Their names. */
  readonly mutants: readonly string[]
}

export const equivalents: readonly Equivalent[] = []
