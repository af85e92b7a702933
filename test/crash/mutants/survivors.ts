import type { Listed } from './equivalents.js'

/**
 * Mutants that the tests let live, and that are not shown to be equivalent: a draw leaves them out. Each is a test that is missing, or
 * a line that is not needed.
 */
export const survivors: readonly Listed[] = [
  {
    reason: 'let live by the third of the tests that is asked first, not put before the others, and not looked at yet',
    mutants: ['RecordFile.markCommitted shortened _ !== undefined && _.holds(_)'],
  },
]
