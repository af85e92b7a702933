/** Other processes, each of which may end between two looks: open(2) answers ENOENT then, read(2) and kill(2) ESRCH. */
import { readFileSync } from 'node:fs'
import { codeOf } from '../src/errors.js'

/** What a file of /proc says of a process or a thread; empty where that has ended. */
export function readProc(path: string): string {
  return unlessEnded(() => readFileSync(path, 'latin1')) ?? ''
}

/** Sends a signal; a process that has ended needs none. */
export function signalRunning(pid: number, name: NodeJS.Signals): void {
  unlessEnded(() => process.kill(pid, name))
}

/** The letter of proc_pid_stat(5): `D` for a sleep that no signal interrupts, `Z` for a zombie; undefined where it has ended. */
export function stateOf(directory: string): string | undefined {
  // The name before it may hold anything, parentheses too.
  return /.*\) (\S)/s.exec(readProc(`${directory}/stat`))?.[1]
}

function unlessEnded<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}
