/** The program under strace, attached to one of its threads or to all of them. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { environment, plainNode } from './distribution.js'

/** The thread that JavaScript runs on, or the one of libuv's pool. */
export type Thread = 'main' | 'worker'

export interface Traced {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** What strace has written. */
  readonly log: string
  readonly threads: Readonly<Record<Thread, number>>
}

export interface TraceOptions {
  /** strace's own arguments: -e trace=…, -e inject=… */
  readonly strace: readonly string[]
  /** Which thread is traced; each counts for itself. */
  readonly thread: Thread | 'all'
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  /** Milliseconds after which the program counts as hung, and is killed. */
  readonly limit?: number
}

const usualLimit = 30_000

/** The program to start, and where it may write. */
export interface Program {
  readonly hold: string
  readonly executable: string
  readonly scratch: string
}

let runs = 0

/** Runs `holdfast ARGS` to its end, under strace from the program's first call on. */
export async function traced(program: Program, args: readonly string[], options: TraceOptions): Promise<Traced> {
  const variables = { ...environment, UV_THREADPOOL_SIZE: '1', ...options.env }
  const command = plainNode(['--import', program.hold, program.executable, ...args], variables)
  const child = spawn('env', command, {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const stdout = collected(child.stdout)
  const stderr = collected(child.stderr)
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  const timer = setTimeout(() => child.kill('SIGKILL'), options.limit ?? usualLimit)
  const logFile = join(program.scratch, `strace-${++runs}.log`)
  try {
    const threads = { main: child.pid ?? 0, worker: await heldThread(child, stderr) }
    const strace = await attach(threads, options, logFile)
    const traceEnded = once(strace, 'close')
    ;(child.stdio[4] as Writable).end('.')
    const [code, signal] = await closed
    await traceEnded
    const log = readFileSync(logFile, 'utf8')
    return { code, signal, stdout: stdout(), stderr: stderr(), log, threads }
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    rmSync(logFile, { force: true })
  }
}

async function heldThread(child: ChildProcess, stderr: () => string): Promise<number> {
  const say = child.stdio[3] as Readable
  const text = await new Promise<string>((resolve, reject) => {
    say.once('data', (chunk: Buffer) => resolve(chunk.toString()))
    child.once('exit', () => reject(new Error(`the program did not start: ${stderr()}`)))
  })
  return Number(text)
}

/** strace, once it has stopped the thread: from here on it misses nothing. */
async function attach(
  threads: Readonly<Record<Thread, number>>,
  { strace, thread }: TraceOptions,
  log: string,
): Promise<ChildProcess> {
  const whom = thread === 'all' ? ['-f', '-p', `${threads.main}`] : ['-p', `${threads[thread]}`]
  const child = spawn('strace', ['-y', '-o', log, ...strace, ...whom], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      said.push(chunk.toString())
      if (said.join('').includes('attached')) resolve()
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`strace did not attach: ${said.join('')}`)))
  })
  return child
}

function collected(stream: Readable | null): () => string {
  let text = ''
  stream?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return () => text
}
