/**
 * What replacing a directory costs on a disk whose flush takes 10 ms, on real file systems, beside library-go's order of
 * calls. README.md here says how to read it.
 */
import { constants } from 'node:os'
import { Disk, missingForDisk, type FileSystem } from '../test/disk/disk.js'
import { contestBatch, contestHistory, contestOneDirectory, fileBytes, type Contest } from './contest.js'
import { goalsOfBatch, goalsOfOneDirectory } from './goals.js'
import { counts, judge, limitsOfBatch, limitsOfHistory, limitsOfOneDirectory, type Result } from './limits.js'

export interface PublicationOptions {
  /** Counted runs of each kind. */
  readonly rounds: number
  /** Milliseconds of a flush. */
  readonly flushTime: number
  /** library-go's order of calls at many files only once. */
  readonly brief: boolean
}

/** So often is measured, at most, what breaks a limit. */
const takes = 3
/** From so many files on, one run of library-go's order takes seconds, and hardly varies. */
const longCount = 200
/** Files of a directory with a history, and of the one beside it. */
const histories: readonly { count: number; comparedCount: number; only?: FileSystem }[] = [
  { count: 10, comparedCount: 10 },
  // XFS writes its log out in the middle where more inodes change: the copies count as so many files more.
  { count: 50, comparedCount: 100, only: 'xfs' },
]

/** What this machine lacks for it; undefined where it lacks nothing. */
export async function missingForPublications(fileSystems: readonly FileSystem[]): Promise<string | undefined> {
  const missing = await missingForDisk(fileSystems)
  if (missing.length === 0) return undefined
  return `${missing.join(', ')} (Debian: e2fsprogs, xfsprogs, btrfs-progs; run as root)`
}

/** In a mount namespace of the process's own: see enterPrivateMounts. */
export async function measurePublications(
  fileSystems: readonly FileSystem[],
  options: PublicationOptions,
): Promise<Result[]> {
  destroyWhenEnded()
  const results: Result[] = []
  for (const fileSystem of fileSystems) results.push(...(await measure(fileSystem, options)))
  return results
}

let held: Disk | undefined

function destroyWhenEnded(): void {
  let ending = false
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // One Ctrl-C comes from the terminal and once more from the process that waits for us outside.
      if (ending) return
      ending = true
      void Promise.resolve(held?.destroy()).finally(() => process.exit(128 + constants.signals[signal]))
    })
  }
}

async function measure(fileSystem: FileSystem, { rounds, flushTime, brief }: PublicationOptions): Promise<Result[]> {
  const results: Result[] = []
  const disk = await Disk.create()
  held = disk
  try {
    await disk.format(fileSystem)
    await disk.mount()
    await disk.flushTime(flushTime)
    for (const count of counts) {
      const what = `${count} files`
      progress(fileSystem, what)
      const comparedRounds = brief && count >= longCount ? 1 : rounds
      const limits = limitsOfOneDirectory(fileSystem, count, rounds)
      const one = await judged(
        async () => contestOneDirectory(disk, count, rounds, comparedRounds),
        (contest) => {
          const result = judge(fileSystem, what, 'library-go', limits, contest)
          return { ...result, goals: goalsOfOneDirectory(contest.ours, count, fileBytes, flushTime) }
        },
      )
      results.push(one)
    }
    for (const parents of ['one', 'own'] as const) {
      const what = `30 × 2 files, ${parents === 'one' ? 'one parent' : '30 parents'}`
      progress(fileSystem, what)
      const batch = await judged(
        async () => contestBatch(disk, parents, rounds),
        (contest) => {
          const result = judge(fileSystem, what, 'one directory', limitsOfBatch, contest)
          return parents === 'one' ? { ...result, goals: goalsOfBatch(result, flushTime) } : result
        },
      )
      results.push(batch)
    }
    for (const { count, comparedCount, only } of histories) {
      if (only !== undefined && only !== fileSystem) continue
      const what = `${count} files, history: 5`
      const beside = count === comparedCount ? 'no history' : `${comparedCount} files, no history`
      progress(fileSystem, what)
      const kept = await judged(
        async () => contestHistory(disk, count, rounds, comparedCount),
        (contest) => judge(fileSystem, what, beside, limitsOfHistory, contest),
      )
      results.push(kept)
    }
    return results
  } finally {
    await disk.destroy()
  }
}

/** Other work of the machine only ever adds flushes and time: a breach of a limit counts only if a second measurement confirms it. */
async function judged<Found extends Contest>(
  contest: () => Promise<Found>,
  resultOf: (contest: Found) => Result,
): Promise<Result> {
  for (let take = 1; ; take++) {
    const result = resultOf(await contest())
    if (result.failures.length > 0 && take < takes) continue
    return take === 1 ? result : { ...result, remarks: [...result.remarks, `measured ${take} times`] }
  }
}

function progress(fileSystem: FileSystem, what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`${fileSystem}, ${what} …\n`)
}
