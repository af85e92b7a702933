/**
 * What holdfast promises of its cost, and whether a contest kept it. Limits are of medians. Flushes are always judged; times
 * only where enough rounds were run, and where another machine would come to the same result.
 */
import type { FileSystem } from '../test/disk/disk.js'
import type { Contest } from './contest.js'
import type { Goal } from './goals.js'
import { typical, type Cost } from './measure.js'

export interface Limits {
  /** Most flushes of one run. */
  flushes?: number
  /** Most flushes, as a multiple of the compared program's. */
  flushesRatio?: number
  /** Most time, as a multiple of the compared program's. */
  timeRatio: number
  /** False: the time is shown beside its limit, and breaks nothing. */
  timeJudged: boolean
}

export interface Result {
  fileSystem: FileSystem
  what: string
  comparedWith: string
  ours: Cost
  compared: Cost
  limits: Limits
  /** Limits that are broken. */
  failures: string[]
  /** What breaks no limit, and is to be known: times above a limit that is not judged. */
  remarks: string[]
  rounds: Contest
  /** The costs that it is to reach one day. */
  goals: Goal[]
}

const flushesUpTo50: Record<FileSystem, number> = { ext4: 6, xfs: 8, btrfs: 8 }
const flushesAt200: Record<FileSystem, number> = { ext4: 7, xfs: 14, btrfs: 12 }
const fasterThanLibraryGo = new Map([
  [2, 1 / 1.25],
  [50, 8],
  [200, 18],
])

/** A median of fewer says little of a machine that others use, too. */
const roundsForTimes = 5

/** The numbers of files for which something is promised. */
export const counts = [...fasterThanLibraryGo.keys()]

/** `rounds`: of how many the times are medians; absent: only flushes are of interest. */
export function limitsOfOneDirectory(fileSystem: FileSystem, count: number, rounds = 0): Limits {
  const faster = fasterThanLibraryGo.get(count)
  if (faster === undefined) throw new RangeError(`nothing is promised of ${count} files`)
  return {
    flushes: (count <= 50 ? flushesUpTo50 : flushesAt200)[fileSystem],
    timeRatio: 1 / faster,
    timeJudged: rounds >= roundsForTimes,
  }
}

/**
 * A batch of 30 against one of them. Its time is shown only: what thirty targets take besides their flushes is work on the
 * processor, one directory next to none, so that the quotient measures the machine and who else uses it.
 */
export const limitsOfBatch: Limits = { flushesRatio: 2, timeRatio: 2, timeJudged: false }

/**
 * A history against none: the copies are synced in the same barrier, so that they cost no flush more. Their time is shown only: they are
 * written, too.
 */
export const limitsOfHistory: Limits = { flushesRatio: 1, timeRatio: 2, timeJudged: false }

export function judge(
  fileSystem: FileSystem,
  what: string,
  comparedWith: string,
  limits: Limits,
  rounds: Contest,
): Result {
  const [ours, compared] = [typical(rounds.ours), typical(rounds.compared)]
  const failures: string[] = []
  const remarks: string[] = []
  // Written so that a figure that is not a number fails.
  const demand = (broken: string[], what: string, figure: number, limit: number | undefined, digits: number): void => {
    if (limit === undefined || figure <= limit) return
    broken.push(`${what}: ${figure.toFixed(digits)}, at most ${limit.toFixed(digits)}`)
  }
  const times = `as a multiple of those of ${comparedWith}`
  demand(failures, 'flushes', ours.flushes, limits.flushes, 1)
  demand(failures, `flushes ${times}`, ours.flushes / compared.flushes, limits.flushesRatio, 2)
  const timeRatio = ours.milliseconds / compared.milliseconds
  demand(
    limits.timeJudged ? failures : remarks,
    limits.timeJudged ? `milliseconds ${times}` : `not judged: milliseconds ${times}`,
    timeRatio,
    limits.timeRatio,
    4,
  )
  return { fileSystem, what, comparedWith, ours, compared, limits, failures, remarks, rounds, goals: [] }
}
