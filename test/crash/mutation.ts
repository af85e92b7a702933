import type { Patch } from './program.js'

/** Suites that a mutation can be put before. */
export type SuiteName = 'model' | 'syscalls' | 'power'

/** One step of the core removed or weakened. */
export interface Mutation {
  readonly name: string
  readonly patches: readonly Patch[]
  /** Suites that must catch it. */
  readonly expected: readonly SuiteName[]
}

export const durable = 'src/durable'

/** A mutation of one place in src/durable. */
export function mutation(
  name: string,
  file: string,
  find: string,
  replace: string,
  expected: readonly SuiteName[] = ['model'],
): Mutation {
  return { name, patches: [{ file: `${durable}/${file}`, find, replace }], expected }
}
