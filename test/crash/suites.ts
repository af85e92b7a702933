import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { project } from '../project.js'
import { testsOf } from '../tested.js'
import { type Catcher, editsOf, type Mutation, type SuiteName, testFile } from './mutation.js'
import { runGroup } from './process-group.js'

/** One suite, or a part of it, as a command in a copy of the program. */
export interface Trial {
  readonly suite: SuiteName
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly needsRoot: boolean
  /** Words that a catcher's complaint must contain; none where it need not catch it. */
  readonly expects: readonly string[]
  /** Which oracle it belongs to, where each is asked alone. */
  readonly oracle?: Oracle
  /** Seconds of processor time that it has: without a complaint by then it has caught nothing, on a busy machine as on a quiet one. */
  readonly processorTime?: number
}

/** What tells a wrong program from a right one: unit tests, rules over played scenes, those with failures and others in them, the model disk. */
export const oracles = ['unit', 'rules', 'failures', 'model'] as const
type Oracle = (typeof oracles)[number]

/** Words for the table: `caught`, the file systems on which it was, the test; none where nothing was seen. */
export interface TrialResult {
  readonly words: readonly string[]
  /** What the suite complained of first. */
  readonly complaint: string
}

interface Ended {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

const caught = 'caught'
/** Every run draws the same states: a cell of the table does not depend on the day. */
const seed = '1'

function modelTrial(only: string, phase: string, extent = 'quick'): Omit<Trial, 'expects'> {
  const effort = ['--effort', extent, '--impatient', '--seed', seed]
  return {
    suite: 'model',
    command: ['test/crash/model/main.js', ...effort, '--only', only, '--phase', phase],
    env: {},
    needsRoot: false,
  }
}

/** Crash states of generated histories: more than the rarest of the mutations needs. */
const historyStates = 30_000

function historiesTrial(): Omit<Trial, 'expects'> {
  const command = ['test/crash/histories/main.js', '--impatient', '--seed', seed, '--states', `${historyStates}`]
  return { suite: 'histories', command, env: {}, needsRoot: false }
}

function sweepTrial(extent: Trial['env']): Omit<Trial, 'expects'> {
  const env = { HOLDFAST_SEED: seed, ...extent }
  return { suite: 'syscalls', command: ['test/crash/syscalls/sweep.test.js'], env, needsRoot: false }
}

function powerTrial(where: readonly string[]): Omit<Trial, 'expects'> {
  const command = ['test/crash/power/run.js', '--quick', '--seed', seed, ...where]
  return { suite: 'power', command, env: {}, needsRoot: true }
}

function ownTrial(file: string, needsRoot: boolean): Omit<Trial, 'expects'> {
  // The trial's own patience ends it: half a minute for each test, tap's default, is short on a busy machine.
  return { suite: 'own test', command: [file.replace(/ts$/, 'js')], env: { TAP_TIMEOUT: '0' }, needsRoot }
}

/** The part of a suite that must catch it. */
export function trialOf(catcher: Catcher, mutation: Mutation): Trial {
  const expects = [expected(catcher, mutation)]
  switch (catcher.suite) {
    case 'model':
      return { ...modelTrial(catcher.only, catcher.phase), expects }
    case 'histories':
      return { ...historiesTrial(), expects }
    case 'syscalls': {
      const { sites } = catcher
      const extent =
        sites === undefined ? { HOLDFAST_SWEEP: 'steps' } : { HOLDFAST_SWEEP: 'cheap', HOLDFAST_SWEEP_ONLY: sites }
      return { ...sweepTrial(extent), expects }
    }
    case 'power': {
      const where = ['--file-systems', catcher.fileSystem, '--only', catcher.only]
      return { ...powerTrial(where), expects }
    }
    case 'own test':
      return { ...ownTrial(testFile(catcher, mutation), catcher.needsRoot), expects }
  }
}

/** What lies behind the FileSystem interface, or beside it: the model disk stands in its place. */
const beyondTheModel = /^(native|src\/durable\/posix)\//

/**
 * All that must catch it but power cuts; and of the other quick suites the part that can see it: a part of the model's states, where the
 * model has the mutated step at all, and the steps that every run must make.
 */
export function matrixTrials(mutation: Mutation): Trial[] {
  const quick = mutation.caughtBy.filter(({ suite }) => suite !== 'power')
  const musts = quick.map((catcher) => trialOf(catcher, mutation))
  const brief = modelTrial('', '', 'brief')
  const others = [
    ...(editsOf(mutation).every(({ file }) => beyondTheModel.test(file))
      ? []
      : [{ ...brief, command: [...brief.command, '--except', 'batch'] }]),
    sweepTrial({ HOLDFAST_SWEEP: 'steps' }),
  ].filter(({ suite }) => musts.every((must) => must.suite !== suite))
  return [...musts, ...others.map((trial) => ({ ...trial, expects: [] }))]
}

/** Whether the model disk has what is changed, and so can tell. */
export const isOnTheModel = (mutation: Mutation): boolean =>
  editsOf(mutation).every(({ file }) => file.startsWith('src/durable/') && !beyondTheModel.test(file))

const ofFailures = ['test/durable/failing-calls.test.ts', 'test/durable/interrupted-calls.test.ts']
const ofRules = ['test/durable/calls.test.ts']

/** What one program of an oracle may take, in seconds of processor time: all scenes with their failures take 50, the model disk more than it has. */
const oracleTime: Record<Oracle, number> = { unit: 15, rules: 15, failures: 75, model: 15 }

/**
 * Each oracle by itself, none of which must catch the mutation. The unit oracle runs the tests that the list names, and the tests of the changed
 * files. The model disk plays the scenarios that the list names first: a mutation that one of them catches costs no further scenario.
 */
export function oracleTrials(mutation: Mutation): Trial[] {
  const own = mutation.caughtBy.flatMap((by) => (by.suite === 'own test' ? testFile(by, mutation) : []))
  // Those of other rooms need more than a copy has.
  const named = editsOf(mutation)
    .flatMap(({ file }) => testsOf(file))
    .filter((file) => file.startsWith('test/durable/'))
  const units = [...new Set([...own, ...named])].filter(
    (file) => existsSync(join(project, file)) && ![...ofFailures, ...ofRules].includes(file),
  )
  const of = (oracle: Oracle, trial: Omit<Trial, 'expects'>): Trial => ({
    ...trial,
    expects: [],
    oracle,
    processorTime: oracleTime[oracle],
  })
  const tests = (oracle: Oracle, files: readonly string[]): Trial[] =>
    files.map((file) => {
      const trial = ownTrial(file, false)
      // Its first failure is enough.
      return of(oracle, { ...trial, env: { ...trial.env, TAP_BAIL: '1' } })
    })
  const brief = modelTrial('', '', 'brief')
  const inList = mutation.caughtBy.flatMap((by) => (by.suite === 'model' ? modelTrial(by.only, by.phase) : []))
  const rest = { ...brief, command: [...brief.command, '--except', 'batch'] }
  return [
    ...tests('unit', units),
    ...tests('rules', ofRules),
    ...tests('failures', ofFailures),
    ...[...inList, rest].map((trial) => of('model', trial)),
  ]
}

function expected(catcher: Catcher, mutation: Mutation): string {
  if (catcher.suite === 'power') return catcher.fileSystem
  return catcher.suite === 'own test' ? nameOf(testFile(catcher, mutation)) : caught
}

/** `test/crash/syscalls/aio.test.ts` is named `aio`. */
function nameOf(file: string): string {
  return basename(file).replace(/\.test\.[jt]s$/, '')
}

/** Runs it in the copy. Throws where it could not be run, which is not the same as to be caught. */
export async function run(trial: Trial, directory: string, patience: number): Promise<TrialResult> {
  const { command, env, processorTime } = trial
  const { code, output, errors } = await runProgram(directory, command, env, patience, processorTime)
  if (code === 0) return { words: [], complaint: '' }
  const failures = [...output.matchAll(/^(?:VIOLATION (\w+)|\s*not ok ).*/gm)]
  const saysInJson = trial.suite === 'model' || trial.suite === 'histories'
  const judged = saysInJson ? output.includes('"states"') : failures.length > 0
  if (!judged && code !== null) {
    const said = `${output.slice(-2000)}${errors.slice(-4000)}`
    throw new Error(`${trial.command.join(' ')} does not even run (exit ${code}):\n${said}`)
  }
  const complaint = (saysInJson ? errors : (failures[0]?.[0] ?? errors)).trim()
  const words = code === null ? [...trial.expects, caught].slice(0, 1) : wordsOf(trial, failures)
  return { words, complaint: (complaint.split('\n')[0] ?? '').slice(0, 200) }
}

function wordsOf({ suite, command }: Trial, failures: readonly RegExpExecArray[]): string[] {
  switch (suite) {
    case 'power':
      return [...new Set(failures.map(([, fileSystem = caught]) => fileSystem))]
    case 'own test':
      return [nameOf(command[0] ?? '')]
    case 'model':
    case 'histories':
    case 'syscalls':
      return [caught]
  }
}

/** Ends a program by SIGXCPU, without a core, once its processor time is over. */
const limited = 'ulimit -c 0 && ulimit -S -t "$0" && exec "$@"'

/**
 * A program of the copy, which tests the copy. `patience`: milliseconds; a hanging one has code null. `processorTime`: seconds, after which
 * the program ends without a complaint.
 */
export async function runProgram(
  directory: string,
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
  patience: number,
  processorTime?: number,
): Promise<Ended> {
  const environment = { PATH: process.env['PATH'] ?? '', HOLDFAST_DIST: directory, ...env }
  // As the runner of the tests loads it: what a rejected call changes is seen by it alone.
  const watched = program.endsWith('.test.js') ? ['--import', join(directory, 'test/runner/preload.js')] : []
  const node = [process.execPath, ...watched, join(directory, program), ...args]
  const [first = '', ...rest] = processorTime === undefined ? node : ['sh', '-c', limited, `${processorTime}`, ...node]
  const { code, signal, hangs, output, errors } = await runGroup(first, rest, { env: environment }, patience)
  if (signal === 'SIGXCPU') return { code: 0, output, errors }
  // A kill from outside must not count as caught.
  if (signal !== null && !hangs) throw new Error(`${program} was ended by ${signal}, from outside`)
  return { code, output, errors: hangs ? `hangs\n${errors}` : errors }
}
