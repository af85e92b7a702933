/** One process of tests, from its start to the end of all that it has started. */
import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { readProc } from '../processes.js'
import { project } from '../project.js'
import { compiled } from './files.js'
import { fileComment, type FileTally, ordinaryFailure, Tally, type TestResult } from './tally.js'
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

/** Runs one file, or several in one process; watched: preload.ts has each call that changes a target looked after. */
export async function runBatch(
  files: readonly string[],
  { timeout, limit }: Limits,
  ended?: (result: TestResult) => void,
  watched = true,
): Promise<Ran> {
  const [only = ''] = files
  const alone = files.length === 1
  const program = alone ? [compiled(only)] : ['dist/test/runner/several.js', ...files]
  const preload = ['--import', pathToFileURL(join(project, 'dist/test/runner/preload.js')).href]
  const start = performance.now()
  const child = spawn(process.execPath, [inspectable, ...preload, ...program], {
    cwd: project,
    env: { ...process.env, TAP_TIMEOUT: `${timeout}`, ...(watched ? {} : { HOLDFAST_WATCH: 'no' }) },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A new process group, so that the runner can kill it with all of its children.
    detached: true,
  })
  running.add(child)
  /** Of the whole process, once it has ended. */
  let ofAll: number | undefined
  const cost = () => ({ seconds: (performance.now() - start) / 1000, cpuSeconds: ofAll ?? cpuOf(child) })
  /** What it had cost as each file began: the parser tells of a comment only with the line behind it, seconds later. */
  const begun: ReturnType<typeof cost>[] = []
  const counted = { seconds: 0, cpuSeconds: 0 }
  const tally = new Tally(alone ? only : undefined, ended, (file) => {
    const now = begun[tally.files.length] ?? cost()
    file.seconds = now.seconds - counted.seconds
    file.cpuSeconds = now.cpuSeconds - counted.cpuSeconds
    Object.assign(counted, now)
  })
  let tap = ''
  let lastLine = ''
  let stderr = ''
  let killed: string | undefined
  const kill = async (): Promise<void> => {
    killed = `It was killed after ${limit} s\n${await whereItHangs(child)}`
    killGroup(child)
  }
  const timer = setTimeout(() => void kill(), limit * 1000)
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    tap += text
    const lines = (lastLine + text).split('\n')
    lastLine = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith(`# ${fileComment}`)) begun.push(cost())
    tally.write(text)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    if (stderr.length > 2 * keptOfStderr) stderr = `${stderr.slice(0, keptOfStderr)}\n…\n${stderr.slice(-keptOfStderr)}`
  })
  const problem = await new Promise<string | undefined>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => {
      ofAll = cpuOfChildrenSince()
      // Children that still run hold its pipes open.
      killGroup(child)
    })
    child.once('close', (code, signal) => resolve(killed ?? problemOf(code, signal)))
  })
  clearTimeout(timer)
  running.delete(child)
  tally.end(problem)
  const ran = tally.files.map(({ file }) => file)
  return { files: tally.files, left: files.filter((file) => !ran.includes(file)), tap, stderr }
}

function problemOf(code: number | null, signal: NodeJS.Signals | null) {
  if (signal !== null) return `It was ended by ${signal}`
  if (code === 1) return ordinaryFailure
  return code === 0 ? undefined : `It ended with exit code ${code}`
}

let cpuBefore = 0

/** CPU-seconds of the processes that have ended since this was last called, with those that they have waited for. */
function cpuOfChildrenSince(): number {
  const [, now] = cpuTimes('self')
  const spent = now - cpuBefore
  cpuBefore = now
  return spent
}

/** CPU-seconds of a process that runs, with those of the children that it has waited for. */
function cpuOf({ pid }: ChildProcess): number {
  const [own, ofChildren] = cpuTimes(`${pid}`)
  return own + ofChildren
}

/** CPU-seconds of a process itself, and of the children that it has waited for; of one that has ended none. */
function cpuTimes(pid: string): [number, number] {
  const fields = readProc(`/proc/${pid}/stat`)
    .replace(/^.*\) /, '')
    .split(' ')
  // utime, stime, cutime and cstime, fields 14 to 17 of proc_pid_stat(5); the first two are cut off. In ticks, a hundred a second on Linux.
  const [user = 0, system = 0, childrensUser = 0, childrensSystem = 0] = fields.slice(11, 15).map(Number)
  return [(user + system) / 100, (childrensUser + childrensSystem) / 100]
}
