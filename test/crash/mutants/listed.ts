/** Mutants with one reason. */
export interface Listed {
  readonly reason: string
  /** Their names. */
  readonly mutants: readonly string[]
}

/** Mutants that are the same as the program, for this reason. */
export const same = (reason: string, mutants: readonly string[]): Listed => ({ reason, mutants })

export const namesIn = (lists: readonly Listed[]): string[] => lists.flatMap(({ mutants }) => mutants)
