/** One process of tests, from its start to the end of all that it has started. */
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { project } from '../project.js'
import { compiled } from './files.js'
import { type FileTally, ordinaryFailure, Tally, type TestResult } from './tally.js'
import { inspectable, whereItHangs } from './where-it-hangs.js'

export interface Limits {
  /** Seconds for a file that sets no timeout. */
  readonly timeout: number
  /** Seconds after which the runner kills the process and its children. */
  readonly limit: number
}

export interface Ran {
  /** The files that ran, each with its results. */
  readonly files: readonly FileTally[]
  /** Those that the process did not come to. */
  readonly left: readonly string[]
  readonly tap: string
  readonly stderr: string
  readonly seconds: number
  readonly cpuSeconds: number
}

/** As much of the standard error of a process as a person reads: its first and its last bytes. */
const keptOfStderr = 64 * 1024

const running = new Set<ChildProcess>()

/** Kills every process of tests, and its children. */
export function killAll(): void {
  for (const child of running) killGroup(child)
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of them have ended.
  }
}

/** Runs one file, or several in one process. */
export async function runBatch(
  files: readonly string[],
  { timeout, limit }: Limits,
  ended?: (result: TestResult) => void,
): Promise<Ran> {
  const [only = ''] = files
  const alone = files.length === 1
  const tally = new Tally(alone ? only : undefined, ended)
  const program = alone ? [compiled(only)] : ['dist/test/runner/several.js', ...files]
  const preload = ['--import', pathToFileURL(join(project, 'dist/test/runner/preload.js')).href]
  const start = performance.now()
  const child = spawn(process.execPath, [inspectable, ...preload, ...program], {
    cwd: project,
    env: { ...process.env, TAP_TIMEOUT: `${timeout}` },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A new process group, so that the runner can kill it with all of its children.
    detached: true,
  })
  running.add(child)
  let tap = ''
  let stderr = ''
  let killed: string | undefined
  const kill = async (): Promise<void> => {
    killed = `It was killed after ${limit} s\n${await whereItHangs(child)}`
    killGroup(child)
  }
  const timer = setTimeout(() => void kill(), limit * 1000)
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    tap += text
    tally.write(text)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    if (stderr.length > 2 * keptOfStderr) stderr = `${stderr.slice(0, keptOfStderr)}\n…\n${stderr.slice(-keptOfStderr)}`
  })
  let cpuSeconds = 0
  const problem = await new Promise<string | undefined>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => {
      cpuSeconds = cpuOfChildrenSince()
      // Children that still run hold its pipes open.
      killGroup(child)
    })
    child.once('close', (code, signal) => resolve(killed ?? problemOf(code, signal)))
  })
  clearTimeout(timer)
  running.delete(child)
  tally.end(problem)
  const seconds = (performance.now() - start) / 1000
  const ran = tally.files.map(({ file }) => file)
  return { files: tally.files, left: files.filter((file) => !ran.includes(file)), tap, stderr, seconds, cpuSeconds }
}

function problemOf(code: number | null, signal: NodeJS.Signals | null) {
  if (signal !== null) return `It was ended by ${signal}`
  if (code === 1) return ordinaryFailure
  return code === 0 ? undefined : `It ended with exit code ${code}`
}

let cpuBefore = 0

/** CPU-seconds of the processes that have ended since this was last called, with those that they have waited for. */
function cpuOfChildrenSince(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  // cutime and cstime, fields 16 and 17 of proc_pid_stat(5); the first two are cut off. In ticks, a hundred a second on Linux.
  const now = (Number(fields[13]) + Number(fields[14])) / 100
  const spent = now - cpuBefore
  cpuBefore = now
  return spent
}
