/** The commands for static pods: in this process, or in one of their own. */
import type { ChildProcess } from 'node:child_process'
import { begin as beginHoldfast, ended, holdfast, type Ended } from '../cli/holdfast.js'

export { ended, type Ended }

/** Starts a command in a separate process, without this machine's environment, which must not decide a test. */
export function begin(args: readonly string[], environment: Record<string, string> = {}): ChildProcess {
  const child = beginHoldfast(args, { env: environment })
  child.stdin?.on('error', () => undefined)
  child.stdin?.end()
  return child
}

/** Runs a command to its end, in this process. */
export function run(args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
  return holdfast(args, { env: environment })
}

/** Runs a command to its end in a separate process: there it does not wait for a lock that this process holds. */
export function runProcess(args: readonly string[]): Promise<Ended> {
  return ended(begin(args))
}
