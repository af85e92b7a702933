/** The commands, run as their users run them: a process of its own for each. */
import type { ChildProcess } from 'node:child_process'
import { begin as beginHoldfast, ended, type Ended } from '../cli/holdfast.js'

export { ended, type Ended }

/** Begins a command. Nothing of this machine's environment decides what is tested. */
export function begin(args: readonly string[], environment: Record<string, string> = {}): ChildProcess {
  const child = beginHoldfast(args, { env: environment })
  child.stdin?.on('error', () => undefined)
  child.stdin?.end()
  return child
}

export function run(args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
  return ended(begin(args, environment))
}
