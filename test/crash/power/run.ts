/**
 * Power cuts and failing disks under real file systems. As root, on Linux with /dev/fuse, loop devices, strace, and mkfs.ext4, mkfs.xfs,
 * mkfs.btrfs:
 *
 *     npm run compile && node dist/test/crash/power/run.js [OPTIONS]
 *
 * HOLDFAST_DIST=/path/to/dist tests another build of the library and the agent, such as one in which a step was removed:
 *
 *     HOLDFAST_DIST=/path/to/dist node dist/test/crash/power/run.js --quick --file-systems btrfs
 *
 * `--quick`: few states, and an end at the first violation. `--only PART,PART`: scenarios whose names contain one of these. `--exhaustive`,
 * or HOLDFAST_CRASH=long: all that fits into an hour. The exit code is 0 if nothing was violated, 1 if something was, 2 if the suite cannot
 * run here or did not come to its end.
 *
 * The seed decides which states of a recording the suite examines; the recording itself, timing and all, cannot be made again. So the suite
 * keeps a violation's, and `--replay DIR` examines it again, state by state.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { missingForDisk } from '../../disk/disk.js'
import { enterPrivateMounts } from '../../disk/private-mounts.js'
import type { Examination } from './examine.js'
import { dist } from './library.js'
import { readOptions, usage, type Options } from './options.js'
import { examinerIn, type Finding, type Plan, type Report, type Row } from './pipeline.js'
import { readRecording } from './recording.js'
import { describeFinding, table } from './report.js'

const options = optionsOrExit()
const missing = await missingForDisk(options.fileSystems)
if (!existsSync(join(dist, 'src/durable/index.js'))) missing.push(`a build of the library in ${dist}`)
if (missing.length > 0) {
  console.error(`power cuts: not run, this needs ${missing.join(', ')}`)
  process.exit(2)
}
await enterPrivateMounts()

// Everything is in memory, and vanishes with this mount namespace.
const directory = mkdtempSync(join(tmpdir(), 'holdfast-power-'))
execFileSync('mount', ['-t', 'tmpfs', 'holdfast-power', directory])
process.on('exit', () => {
  execFileSync('umount', ['--lazy', directory])
  rmSync(directory, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(2))

process.exitCode = options.replay === undefined ? await all(options) : await replay(options.replay)
process.exit()

async function all({ fileSystems, seed, ...rest }: Options): Promise<number> {
  const began = performance.now()
  console.log(`power cuts: seed ${seed}, ${rest.depth} states, library in ${dist}`)
  const rows: Row[] = []
  const findings: Finding[] = []
  let skipped = 0
  const take = (report: Report): void => {
    if ('row' in report) rows.push(report.row)
    else if ('skipped' in report) {
      skipped += 1
      console.log(`skipped: power cuts (${report.skipped})`)
    } else {
      findings.push(report.finding)
      console.log(describeFinding(report.finding))
    }
  }
  const ends = await Promise.all(
    fileSystems.map((fileSystem) => {
      return pipeline({ ...rest, fileSystem, seed, directory: join(directory, fileSystem) }, take)
    }),
  )
  console.log(table(rows))
  const states = rows.reduce((sum, row) => sum + row.states, 0)
  const seconds = Math.round((performance.now() - began) / 1000)
  console.log(`${states} states in ${seconds} s, ${findings.length} violations, seed ${seed}`)
  console.log(`${rows.length} passed, ${findings.length} failed, ${skipped} skipped`)
  if (findings.length > 0) return 1
  return ends.every((code) => code === 0) ? 0 : 2
}

async function pipeline(plan: Plan, take: (report: Report) => void): Promise<number> {
  const path = new URL('./pipeline-program.js', import.meta.url).pathname
  mkdirSync(plan.directory)
  // A namespace for each: a later namespace would keep a mount that exists here at its start.
  const command = ['--mount', '--propagation', 'private', '--', process.execPath, path, JSON.stringify(plan)]
  const child = spawn('unshare', command, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: plan.directory },
  })
  const ended = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? 2)))
  for await (const line of createInterface({ input: child.stdout })) take(JSON.parse(line) as Report)
  return ended
}

async function replay(from: string): Promise<number> {
  const recording = readRecording(from)
  console.log(
    `${recording.scenario} on ${recording.fileSystem}, seed ${recording.seed}${recording.note ? `: ${recording.note}` : ''}`,
  )
  const examiner = examinerIn(join(directory, 'examiner'))
  const { states, violations } = (await examiner.ask({ recording, most: Infinity })) as Examination
  await examiner.end()
  for (const violation of violations) {
    console.log(describeFinding({ ...recording, problem: violation.problem, kept: from, violation }))
  }
  console.log(`${states} states, ${violations.length} violations`)
  return violations.length === 0 ? 0 : 1
}

function optionsOrExit(): Options {
  try {
    const read = readOptions(process.argv.slice(2), process.env)
    if (read !== 'help') return read
    console.log(usage)
    process.exit(0)
  } catch (error) {
    console.error(`power cuts: ${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}
