import { spawn, type ChildProcess } from 'node:child_process'
import type { Hook } from '../config/hooks.js'
import { Deadline } from '../deadline.js'
import { describeCode } from '../errors.js'
import type { Log } from '../log.js'
import { failureCode, HookError } from './hook-error.js'

/** Milliseconds between SIGTERM and SIGKILL for a command that is over its time. */
const grace = 1000

/** A command gets nothing of holdfast's own environment, which may hold tokens. PATH leads to a program without a slash. */
export const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/',
  LANG: 'C.UTF-8',
}

export interface ProgramCall extends Pick<Hook<'exec'>, 'name' | 'command' | 'timeout'> {
  /** Ends the processes that it has started, too; default false: they may stay. */
  readonly all?: boolean
}

/**
 * Runs a command without a shell, in a new session, with /dev/null for its input and output. It is done when the command
 * itself has ended with 0. Its output is never kept, as it may hold secrets, and goes to no pipe: a program that the command leaves in the
 * background would die of SIGPIPE once holdfast has closed its end. On timeout and on `signal` its whole process group is ended.
 */
export async function runExec(hook: ProgramCall, signal: AbortSignal, log: Log): Promise<void> {
  const { name, command, timeout, all = false } = hook
  const [program, ...words] = command
  if (program === undefined) throw new HookError(name, 'names no command')
  // Where no file descriptor is free, Node reports the failure in an event.
  let child: ChildProcess
  try {
    child = spawn(program, words, {
      env: environment,
      cwd: '/',
      detached: true,
      stdio: 'ignore',
    })
  } catch (error) {
    throw notStarted(name, failureCode(error))
  }
  const ended = ending(child)
  const deadline = new Deadline(timeout, signal)
  const stopped = stopOnAbort(child, deadline.signal)
  try {
    const result = await ended
    log.debug({ hook: name, exitCode: result.code, signal: result.signal }, 'hook command ended')
    if (deadline.expired && !signal.aborted)
      throw new HookError(name, `still running after ${timeout} ms: holdfast ended it`)
    if (result.error !== undefined) throw notStarted(name, result.error)
    // Only the kernel, out of memory, or a person sends SIGKILL.
    if (result.signal !== null) throw new HookError(name, `ended by ${result.signal}`, result.signal === 'SIGKILL')
    if (result.code !== 0) throw new HookError(name, `exit code ${result.code ?? 'unknown'}; its output is not shown`)
  } finally {
    stopped.dispose()
    deadline.dispose()
    if (all) signalGroup(child, 'SIGKILL')
  }
}

function notStarted(name: string, code: string): HookError {
  return new HookError(name, `could not be started: ${describeCode(code)}`, true)
}

interface ProgramEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly error?: string
}

/** Settles when the command itself has ended; its children may live on. */
function ending(child: ChildProcess): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    // Node's error carries the arguments: only its code goes on.
    child.once('error', (error) => resolve({ code: null, signal: null, error: failureCode(error) }))
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
}

/** SIGTERM to the group, and SIGKILL to the rest of it when the command has ended or the grace is over. */
function stopOnAbort(child: ChildProcess, limit: AbortSignal): { happened: boolean; dispose: () => void } {
  let killing: NodeJS.Timeout | undefined
  const stop = () => {
    state.happened = true
    signalGroup(child, 'SIGTERM')
    killing = setTimeout(() => signalGroup(child, 'SIGKILL'), grace)
    child.once('exit', () => signalGroup(child, 'SIGKILL'))
  }
  const state = {
    happened: false,
    dispose: () => {
      limit.removeEventListener('abort', stop)
      clearTimeout(killing)
    },
  }
  if (limit.aborted) stop()
  else limit.addEventListener('abort', stop, { once: true })
  return state
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH: the group has gone, which is the aim.
  }
}
