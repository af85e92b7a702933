import type { Patch } from './program.js'

/** Suites that a mutation can be put before, cheapest first; the columns of the table. */
export const suiteNames = ['own test', 'model', 'histories', 'syscalls', 'power'] as const
export type SuiteName = (typeof suiteNames)[number]

/** A suite that must catch a mutation, and where in the suite: a usual run puts only this before it, a long one all. */
export type Catcher =
  /** Scenarios, and ways to explore them, whose names hold these; '' for each, until one catches it. */
  | { readonly suite: 'model'; readonly only: string; readonly phase: string }
  /** Generated histories on the model disk. */
  | { readonly suite: 'histories' }
  /** Faults at the sites whose description holds this; undefined: the steps that every run must make, and no fault. */
  | { readonly suite: 'syscalls'; readonly sites: string | undefined }
  | { readonly suite: 'power'; readonly fileSystem: 'ext4' | 'xfs' | 'btrfs'; readonly only: string }
  /** A test file that is about this alone, below `test` and without its ending. */
  | { readonly suite: 'own test'; readonly file: string; readonly needsRoot: boolean }

export const model = (only = '', phase = ''): Catcher => ({ suite: 'model', only, phase })
export const histories: Catcher = { suite: 'histories' }
export const syscalls = (sites?: string): Catcher => ({ suite: 'syscalls', sites })
export const power = (fileSystem: 'ext4' | 'xfs' | 'btrfs', only: string): Catcher => ({
  suite: 'power',
  fileSystem,
  only,
})
export const ownTest = (file: string): Catcher => ({ suite: 'own test', file, needsRoot: false })
export const ownTestOfRoot = (file: string): Catcher => ({ suite: 'own test', file, needsRoot: true })

/** One step of the program removed or weakened. */
export interface Mutation {
  readonly name: string
  readonly patches: readonly Patch[]
  /** All of these must catch it. The first is the cheapest: it and those on real disks are what a usual run asks. */
  readonly caughtBy: readonly [Catcher, ...Catcher[]]
}

/** A mutation of one place; `file` from src/durable, or from the root where it says so with a leading slash. */
export function mutation(
  name: string,
  file: string,
  find: string,
  replace: string,
  ...caughtBy: readonly Catcher[]
): Mutation {
  return compound(name, [[file, find, replace]], ...caughtBy)
}

/** A mutation that takes several places. */
export function compound(
  name: string,
  places: readonly (readonly [file: string, find: string, replace: string])[],
  ...caughtBy: readonly Catcher[]
): Mutation {
  const [first = model(), ...more] = caughtBy
  const patches = places.map(([file, find, replace]) => ({
    file: file.startsWith('/') ? file.slice(1) : `src/durable/${file}`,
    find,
    replace,
  }))
  return { name, patches, caughtBy: [first, ...more] }
}
