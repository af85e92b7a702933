import { basename, join } from 'node:path'
import { type Catcher, type Mutation, type SuiteName, testFile } from './mutation.js'
import { runGroup } from './process-group.js'

/** One suite, or a part of it, as a command in a copy of the program. */
export interface Trial {
  readonly suite: SuiteName
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly needsRoot: boolean
  /** Words that a catcher's complaint must contain. */
  readonly expects: readonly string[]
}

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
/** Of the scenes whose plays `npm test` only draws. */
export const allPlays = { HOLDFAST_PLAYS: 'all' }
/** Every run draws the same states: a cell of the table does not depend on the day. */
const seed = '1'

export function modelTrial(only: string, phase: string, extent = 'quick', except = ''): Omit<Trial, 'expects'> {
  const effort = ['--effort', extent, '--impatient', '--seed', seed, '--except', except]
  return {
    suite: 'model',
    command: ['test/crash/model/main.js', ...effort, '--only', only, '--phase', phase],
    env: {},
    needsRoot: false,
  }
}

/** Crash states of generated histories: more than the rarest of the mutations needs. */
const enoughStates = ['--states', '30000']

export function historiesTrial(extent: readonly string[] = enoughStates): Omit<Trial, 'expects'> {
  const command = ['test/crash/histories/main.js', '--impatient', '--seed', seed, ...extent]
  return { suite: 'histories', command, env: {}, needsRoot: false }
}

export function sweepTrial(extent: Trial['env']): Omit<Trial, 'expects'> {
  const env = { HOLDFAST_SEED: seed, ...extent }
  return { suite: 'syscalls', command: ['test/crash/syscalls/sweep.test.js'], env, needsRoot: false }
}

function powerTrial(where: readonly string[]): Omit<Trial, 'expects'> {
  const command = ['test/crash/power/run.js', '--quick', '--seed', seed, ...where]
  return { suite: 'power', command, env: {}, needsRoot: true }
}

export function ownTrial(file: string, needsRoot: boolean): Omit<Trial, 'expects'> {
  // The trial's own patience ends it: half a minute for each test, tap's default, is short on a busy machine.
  return { suite: 'own test', command: [file.replace(/ts$/, 'js')], env: { TAP_TIMEOUT: '0', ...allPlays }, needsRoot }
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
  const { command, env } = trial
  const { code, output, errors } = await runProgram(directory, command, env, patience)
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

/** What node is started with for a program of the copy. */
export function argumentsOf(directory: string, [program = '', ...args]: readonly string[]): string[] {
  // As the runner of the tests loads it: what a rejected call changes is seen by it alone.
  const watched = program.endsWith('.test.js') ? ['--import', join(directory, 'test/runner/preload.js')] : []
  return [...watched, join(directory, program), ...args]
}

/** A program of the copy, which tests the copy. `patience`: milliseconds; a hanging one has code null. */
export async function runProgram(
  directory: string,
  program: readonly string[],
  env: Readonly<Record<string, string>>,
  patience: number,
): Promise<Ended> {
  const environment = { PATH: process.env['PATH'] ?? '', HOLDFAST_DIST: directory, ...env }
  const options = { env: environment }
  const { code, signal, hangs, output, errors } = await runGroup(
    process.execPath,
    argumentsOf(directory, program),
    options,
    patience,
  )
  // A kill from outside must not count as caught.
  if (signal !== null && !hangs) throw new Error(`${program.join(' ')} was ended by ${signal}, from outside`)
  return { code, output, errors: hangs ? `hangs\n${errors}` : errors }
}
