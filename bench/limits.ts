/** What holdfast promises of its cost, and whether a contest kept it. Limits are of medians. */
import type { FileSystem } from '../test/disk/disk.js'
import type { Contest } from './contest.js'
import { typical, type Cost } from './measure.js'

export interface Limits {
  /** Most flushes of one run. */
  flushes?: number
  /** Most flushes, as a multiple of what it is compared with. */
  flushesRatio?: number
  /** Most time, as a multiple of what it is compared with. */
  timeRatio: number
}

export interface Result {
  fileSystem: FileSystem
  what: string
  comparedWith: string
  ours: Cost
  compared: Cost
  limits: Limits
  failures: string[]
  rounds: Contest
}

const flushesUpTo50: Record<FileSystem, number> = { ext4: 6, xfs: 8, btrfs: 8 }
const flushesAt200: Record<FileSystem, number> = { ext4: 7, xfs: 14, btrfs: 12 }
const fasterThanLibraryGo = new Map([
  [2, 1 / 1.25],
  [50, 8],
  [200, 18],
])

/** The numbers of files for which something is promised. */
export const counts = [...fasterThanLibraryGo.keys()]

export function limitsOfOneDirectory(fileSystem: FileSystem, count: number): Limits {
  const faster = fasterThanLibraryGo.get(count)
  if (faster === undefined) throw new RangeError(`nothing is promised of ${count} files`)
  return { flushes: (count <= 50 ? flushesUpTo50 : flushesAt200)[fileSystem], timeRatio: 1 / faster }
}

/** A batch of 30 against one of them. */
export const limitsOfBatch: Limits = { flushesRatio: 2, timeRatio: 2 }

export function judge(
  fileSystem: FileSystem,
  what: string,
  comparedWith: string,
  limits: Limits,
  rounds: Contest,
): Result {
  const [ours, compared] = [typical(rounds.ours), typical(rounds.compared)]
  const failures: string[] = []
  // Written so that a figure that is not a number fails.
  const demand = (what: string, figure: number, limit: number | undefined, digits: number): void => {
    if (limit === undefined || figure <= limit) return
    failures.push(`${what}: ${figure.toFixed(digits)}, at most ${limit.toFixed(digits)}`)
  }
  const times = `as a multiple of those of ${comparedWith}`
  demand('flushes', ours.flushes, limits.flushes, 1)
  demand(`flushes ${times}`, ours.flushes / compared.flushes, limits.flushesRatio, 2)
  demand(`milliseconds ${times}`, ours.milliseconds / compared.milliseconds, limits.timeRatio, 4)
  return { fileSystem, what, comparedWith, ours, compared, limits, failures, rounds }
}
