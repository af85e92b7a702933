/**
 * What replacing a directory costs on a disk whose flush takes 10 ms, on real file systems, beside library-go's order of
 * calls: `npm run bench` as root. README.md here says how to read it.
 */
import { writeFileSync } from 'node:fs'
import { availableParallelism, constants, loadavg, release } from 'node:os'
import { parseArgs } from 'node:util'
import { Disk, missingForDisk, type FileSystem } from '../test/disk/disk.js'
import { enterPrivateMounts } from '../test/disk/private-mounts.js'
import { contestBatch, contestHistory, contestOneDirectory, fileBytes, type Contest } from './contest.js'
import { describeGoal, goalsOfBatch, goalsOfOneDirectory, isMet } from './goals.js'
import { counts, judge, limitsOfBatch, limitsOfHistory, limitsOfOneDirectory, type Result } from './limits.js'
import { table } from './report.js'

const usage = `usage: npm run bench -- [--rounds N] [--flush-time MS] [--file-systems ext4,xfs,btrfs] [--brief] [--json FILE] [--check] [--goals]`

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

const { rounds, flushTime, fileSystems, brief, json, check, goals } = options()
const missing = await missingForDisk(fileSystems)
if (missing.length > 0) {
  console.error(`bench: this needs ${missing.join(', ')} (Debian: e2fsprogs, xfsprogs, btrfs-progs; run as root)`)
  process.exit(2)
}
await enterPrivateMounts()

let disk: Disk | undefined
let ending = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // One Ctrl-C comes from the terminal and once more from the process that waits for us outside.
    if (ending) return
    ending = true
    void Promise.resolve(disk?.destroy()).finally(() => process.exit(128 + constants.signals[signal]))
  })
}

const [load = 0] = loadavg()
if (load > availableParallelism() / 4) {
  console.error(`bench: the machine is busy (load ${load.toFixed(1)}): the counts of flushes hold, the times do not`)
}

const results: Result[] = []
for (const fileSystem of fileSystems) await measure(fileSystem)
console.log(table(results))
for (const { fileSystem, what, failures, remarks } of results) {
  for (const failure of failures) console.log(`FAIL ${fileSystem}, ${what}: ${failure}`)
  for (const remark of remarks) console.log(`note ${fileSystem}, ${what}: ${remark}`)
}
const aims = results.flatMap((result) => result.goals.map((goal) => ({ result, goal })))
console.log(
  `\ngoals: ${aims.filter(({ goal }) => isMet(goal)).length} of ${aims.length} met${goals ? '' : ' (--goals fails on the others)'}`,
)
for (const { result, goal } of aims) {
  console.log(`${isMet(goal) ? 'met    ' : 'not met'}  ${result.fileSystem}, ${result.what}, ${describeGoal(goal)}`)
}
if (json !== undefined) {
  const run = { kernel: release(), node: process.version, flushMilliseconds: flushTime, rounds, results }
  writeFileSync(json, `${JSON.stringify(run, undefined, 2)}\n`)
}
const broken = check && results.some(({ failures }) => failures.length > 0)
process.exit(broken || (goals && aims.some(({ goal }) => !isMet(goal))) ? 1 : 0)

async function measure(fileSystem: FileSystem): Promise<void> {
  disk = await Disk.create()
  try {
    await disk.format(fileSystem)
    await disk.mount()
    await disk.flushTime(flushTime)
    for (const count of counts) {
      const what = `${count} files`
      progress(fileSystem, what)
      const comparedRounds = brief && count >= longCount ? 1 : rounds
      const limits = limitsOfOneDirectory(fileSystem, count, rounds)
      await judged(
        async (on) => contestOneDirectory(on, count, rounds, comparedRounds),
        (contest) => {
          const result = judge(fileSystem, what, 'library-go', limits, contest)
          return { ...result, goals: goalsOfOneDirectory(contest.ours, count, fileBytes, flushTime) }
        },
      )
    }
    for (const parents of ['one', 'own'] as const) {
      const what = `30 × 2 files, ${parents === 'one' ? 'one parent' : '30 parents'}`
      progress(fileSystem, what)
      await judged(
        async (on) => contestBatch(on, parents, rounds),
        (contest) => {
          const result = judge(fileSystem, what, 'one directory', limitsOfBatch, contest)
          return parents === 'one' ? { ...result, goals: goalsOfBatch(result, flushTime) } : result
        },
      )
    }
    for (const { count, comparedCount, only } of histories) {
      if (only !== undefined && only !== fileSystem) continue
      const what = `${count} files, history: 5`
      const beside = count === comparedCount ? 'no history' : `${comparedCount} files, no history`
      progress(fileSystem, what)
      await judged(
        async (on) => contestHistory(on, count, rounds, comparedCount),
        (contest) => judge(fileSystem, what, beside, limitsOfHistory, contest),
      )
    }
  } finally {
    await disk.destroy()
  }
}

/** What else the machine does only ever adds flushes and time: what breaks a limit is measured again before it is believed. */
async function judged<Found extends Contest>(
  contest: (on: Disk) => Promise<Found>,
  resultOf: (contest: Found) => Result,
): Promise<void> {
  for (let take = 1; ; take++) {
    if (!disk) throw new Error('there is no disk')
    const result = resultOf(await contest(disk))
    if (result.failures.length > 0 && take < takes) continue
    results.push(take === 1 ? result : { ...result, remarks: [...result.remarks, `measured ${take} times`] })
    return
  }
}

function progress(fileSystem: FileSystem, what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`${fileSystem}, ${what} …\n`)
}

function options(): {
  rounds: number
  flushTime: number
  fileSystems: FileSystem[]
  brief: boolean
  json: string | undefined
  check: boolean
  goals: boolean
} {
  try {
    const { values } = parseArgs({
      options: {
        rounds: { type: 'string', default: '5' },
        'flush-time': { type: 'string', default: '10' },
        'file-systems': { type: 'string', default: 'ext4,xfs,btrfs' },
        brief: { type: 'boolean', default: false },
        json: { type: 'string' },
        check: { type: 'boolean', default: false },
        goals: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    return {
      rounds: positive('--rounds', values.rounds),
      flushTime: positive('--flush-time', values['flush-time']),
      fileSystems: values['file-systems'].split(',').map(fileSystemNamed),
      brief: values.brief,
      json: values.json,
      check: values.check,
      goals: values.goals,
    }
  } catch (error) {
    console.error(`bench: ${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} takes a whole number from 1, not ${text}`)
  return value
}

function fileSystemNamed(name: string): FileSystem {
  if (name === 'ext4' || name === 'xfs' || name === 'btrfs') return name
  throw new Error(`--file-systems knows ext4, xfs and btrfs, not ${name}`)
}
