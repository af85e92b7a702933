import { availableParallelism } from 'node:os'

/** The suites that this runner runs: their files, how many at a time, and how long one may take. */
export interface Suite {
  /** Which paths, from the project's root, are its test files. */
  readonly holds: (path: string) => boolean
  /** Fewer test files fail a run of the whole suite: a file is missing. A commit that takes a file away lowers this. */
  readonly files: number
  /** Processes that run at a time; undefined: one for each processor. */
  readonly jobs: number | undefined
  /** Seconds for a file that sets no timeout. */
  readonly timeout: number
  /** Seconds after which the runner kills a file's processes, beyond the file's own timeout. */
  readonly limit: number
}

const below =
  (...directories: readonly string[]) =>
  (path: string): boolean =>
    directories.some((directory) => path.startsWith(`${directory}/`))

const apart = below('test/e2e', 'test/node', 'test/crash')

export const suites = {
  // These tests wait for disks, servers and deadlines for nearly half of their time.
  unit: { holds: (path) => !apart(path), files: 432, jobs: 2 * availableParallelism(), timeout: 600, limit: 660 },
  e2e: { holds: below('test/e2e'), files: 26, jobs: undefined, timeout: 900, limit: 960 },
  // Containers, kubelets and systemd wait for most of their time.
  node: { holds: below('test/node'), files: 6, jobs: availableParallelism() + 1, timeout: 1200, limit: 1260 },
  crash: { holds: below('test/crash'), files: 27, jobs: 1, timeout: 3600, limit: 3660 },
} as const satisfies Record<string, Suite>

export type SuiteName = keyof typeof suites

export const suiteNames = Object.keys(suites) as SuiteName[]

/** @throws Error where files of a suite are missing. */
export function refuseTooFew(name: SuiteName, files: readonly string[]): void {
  const { files: least } = suites[name]
  if (files.length < least)
    throw new Error(
      `The suite ${name} has ${files.length} test files, and test/runner/suites.ts demands ${least}: find what is missing`,
    )
}

export function suiteOf(path: string): Suite {
  const name = suiteNames.find((one) => suites[one].holds(path))
  if (name === undefined) throw new Error(`No suite holds ${path}`)
  return suites[name]
}
