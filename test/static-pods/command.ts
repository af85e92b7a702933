/** The commands, run as their users run them: a process of its own for each. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { makeLauncher } from './program.js'

const launcher = makeLauncher()

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Begins a command. Nothing of this machine's environment decides what is tested. */
export function begin(args: readonly string[], environment: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, [launcher, ...args], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** Waits for its end. */
export async function ended(child: ChildProcess): Promise<Ended> {
  const { stdout, stderr } = child
  if (stdout === null || stderr === null) throw new Error('its output is not piped')
  const [[code, signal], out, error] = await Promise.all([
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
    text(stdout),
    text(stderr),
  ])
  return { code, signal, stdout: out, stderr: error }
}

export function run(args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
  return ended(begin(args, environment))
}
