/*
 * A program that strace stops at one of its system calls, until it is let go on: what happens meanwhile takes as long as it takes.
 */
import { existsSync, readFileSync } from 'node:fs'
import { readProc, signalRunning } from '../processes.js'

/** The command under strace, which writes to `log`: each of these calls takes effect, and stops the program before it returns. */
export function stoppedAt(call: string, command: readonly string[], log: string): string[] {
  const trace = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=SIGSTOP`]
  return ['strace', '-f', '-qq', '-o', log, ...trace, ...command]
}

/** Whether it has been stopped. Its state in /proc does not show it: strace stops it for a moment at every call. */
export function isStopped(log: string): boolean {
  return existsSync(log) && readFileSync(log, 'latin1').includes('stopped by SIGSTOP')
}

/** Lets the program below this strace go on, up to the next of those calls. */
export function goOn(strace: number | undefined): void {
  const child = childOf(strace)
  if (child !== undefined) signalRunning(child, 'SIGCONT')
}

function childOf(strace: number | undefined): number | undefined {
  const children = readProc(`/proc/${strace ?? 0}/task/${strace ?? 0}/children`).trim()
  return children === '' ? undefined : Number(children.split(' ')[0])
}
