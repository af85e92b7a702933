/* What a record says of a directory that moves: see relocation.ts. */

/**
 * How far the content of another path has come to this one: `staged`: it is published here, durably; `both`: both are kept up to date, this
 * one first; `draining`: nobody uses the other one, and it goes; `done`: it is gone.
 */
export const relocationStates = ['staged', 'both', 'draining', 'done'] as const
export type RelocationState = (typeof relocationStates)[number]

/** What is left where the content was: nothing, or a symbolic link. */
export const movedFromForms = ['removed', 'link'] as const
export type MovedFromForm = (typeof movedFromForms)[number]

/** A target's content comes from another path: see relocation.ts. */
export interface Relocation {
  /** Absolute. */
  from: string
  as: MovedFromForm
  state: RelocationState
  /** Milliseconds since the epoch, of this state. */
  since: number
}
