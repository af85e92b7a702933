import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'
import { readArguments, usage } from './arguments.js'
import { namedFiles, testFiles } from './files.js'
import { Report } from './report.js'
import { killAll, runBatch } from './run-batch.js'
import { batches, keepTimes, workThrough, type Times } from './schedule.js'
import { refuseTooFew, suiteOf, suites } from './suites.js'
import type { FileTally } from './tally.js'
import { ownTemporaryDirectory } from './temporary.js'

/** Runs tests. The exit code: 0 if none failed, 1 if one did, 2 where the arguments make no sense. */
export async function main(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(usage)
    return 0
  }
  try {
    return await run(readArguments(argv))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    return 2
  }
}

/** A sixth of the processes watch their calls: half of them by a seed that stays, half by a new one. */
function isWatched([first = '']: readonly string[]): boolean {
  const draws = [1, seed].map((one) => Random.for(one, first).next() < 1 / 12)
  return draws.includes(true) || first === 'test/runner/unchanged-answers.test.ts'
}

async function run({
  suite,
  jobs,
  alone,
  tap,
  verbose,
  costs,
  paths,
}: ReturnType<typeof readArguments>): Promise<number> {
  const start = performance.now()
  const all = testFiles()
  const files = paths.length === 0 ? all.filter(suites[suite].holds) : namedFiles(paths, all, process.cwd())
  if (paths.length === 0) refuseTooFew(suite, files)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      killAll()
      process.exit(1)
    })
  }
  const areUnit = files.every(suites.unit.holds)
  const dropTemporary = areUnit ? ownTemporaryDirectory() : undefined
  // Node before 22 reads and parses all roots at each start because of it: 0.045 s of CPU for each of some 350 processes. What asks a
  // server here has made its certificate.
  if (areUnit) delete process.env['NODE_EXTRA_CA_CERTS']
  if (tap !== undefined) writeFileSync(tap, '')
  const coverage = process.env['NODE_V8_COVERAGE']
  if (coverage !== undefined) {
    // Some tests run the program as another user, which is measured, too.
    mkdirSync(coverage, { recursive: true })
    chmodSync(coverage, 0o1777)
  }
  const watchesAll = paths.length > 0 || process.env['HOLDFAST_PLAYS'] === 'all'
  if (!watchesAll) console.log(`a sixth of the processes watch what a refused call leaves; ${replay}`)
  const report = new Report((line) => console.log(line), verbose || paths.length > 0)
  const spent: FileTally[] = []
  const times: Times = {}
  const work = async (batch: readonly string[]): Promise<string[][]> => {
    const watched = watchesAll || isWatched(batch)
    const ran = await runBatch(batch, suiteOf(batch[0] ?? ''), (result) => report.test(result), watched)
    if (tap !== undefined) appendFileSync(tap, ran.tap)
    report.batch(ran)
    spent.push(...ran.files)
    for (const { file, seconds } of ran.files) times[file] = seconds
    return ran.left.length === 0 ? [] : [[...ran.left]]
  }
  // Suites that must have the machine to themselves decide for all that run with them.
  const narrow = Math.min(...files.map((file) => suiteOf(file).jobs ?? availableParallelism()))
  await workThrough(batches(files, alone), jobs ?? narrow, work)
  dropTemporary?.()
  keepTimes(times)
  spent.sort((a, b) => b.cpuSeconds - a.cpuSeconds)
  for (const { file, cpuSeconds } of spent.slice(0, costs)) console.log(`${cpuSeconds.toFixed(1)} s of CPU: ${file}`)
  const cpuSeconds = spent.reduce((sum, file) => sum + file.cpuSeconds, 0)
  report.totals((performance.now() - start) / 1000, cpuSeconds)
  return report.failed === 0 ? 0 : 1
}
