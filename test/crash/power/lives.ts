/** What happens to a target with a life, step by step: names, and what the target holds after each. See life.ts. */

const stories = {
  /** Published with `history: 2`, until the first content goes; rolled back, held, and published again. */
  history: [0, 1, 2, 3, 4, 3, 3, 5],
  /** Published with `history: 1`, removed, published, removed. */
  removal: [0, 1, 2, 0, 3, 0],
  /** An adoption of foreign content, and the publications after it. */
  adoption: [1, 2, 3],
  /** The new path of a directory that moves: the old one is published before, and gone at the end. */
  relocation: [0, 0, 2, 3, 4],
} as const satisfies Record<string, readonly number[]>

export type Life = keyof typeof stories

/** Number of the content that the target holds after a step, 0 for none; beyond the last one, a new content each. */
export function contentAfter(life: Life, step: number): number {
  return stories[life][step] ?? step
}

/** The step after the last one: an ordinary publication. */
export function stepsOf(life: Life): number {
  return stories[life].length
}

/** Steps of `history`. */
export const rollback = 5
export const hold = 6

/** Steps that publish nothing new: a predecessor's leftovers stay until the next publication. */
export const publishesNothing = (life: Life, step: number): boolean =>
  life === 'history' && (step === rollback || step === hold)
