/** One line of the table of differences, and how its differences are known. */
import type { CaseName } from './cases.js'
import type { Difference } from './compare.js'

export interface Row {
  readonly libraryGo: string
  readonly holdfast: string
  readonly why: string
  /** Which differences are this one. */
  readonly shown?: (difference: Difference) => boolean
  /** For what no tree, exit code or event shows: a test file, and a text in it. */
  readonly tested?: readonly [file: string, text: string]
}

/** Whatever differs in these cases: they are about this alone. */
export const allOf =
  (...names: CaseName[]) =>
  (difference: Difference) =>
    names.includes(difference.case)
/** Differences of this kind below such paths, in these cases or in all. */
export const at =
  (what: Difference['what'], path: RegExp, ...names: CaseName[]) =>
  (difference: Difference) =>
    difference.what === what && path.test(difference.path) && (names.length === 0 || names.includes(difference.case))
export const either =
  (...some: ((difference: Difference) => boolean)[]) =>
  (difference: Difference) =>
    some.some((one) => one(difference))
export const ends =
  (theirs: (end: number) => boolean, ours: (end: number) => boolean) =>
  ({ what, theirs: left, ours: right }: Difference) =>
    what === 'end' && typeof left === 'number' && theirs(left) && ours(Number(right))
export const failed = (end: number): boolean => end !== 0
export const isMonitor = ({ case: name }: Difference): boolean => name.startsWith('monitor: ')
export const isSyncer = ({ case: name }: Difference): boolean => name.startsWith('cert-syncer: ')
