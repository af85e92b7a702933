import type { ChildProcess } from 'node:child_process'
import { basename } from 'node:path'
import { codeOf, describeCode } from '../errors.js'
import type { Io } from './io.js'

interface CommandOutput {
  /** All that it printed, where it ended with 0. */
  readonly output: Uint8Array
  /** How it failed: neither its arguments, which may hold a secret, nor what it printed is repeated. undefined: it ended with 0. */
  readonly problem: string | undefined
}

const forwarded = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const

/**
 * Runs a command to its end, with this process's standard input and standard error. A signal that this process receives is
 * forwarded, and the command's end awaited. At most `most` bytes are taken.
 */
export async function outputOf(
  [program = '', ...args]: readonly string[],
  { io: { events, env, stdout, stderr }, most }: { readonly io: Io; readonly most: number },
): Promise<CommandOutput> {
  const { spawn } = await import('node:child_process')
  // Node answers one without streams where no file descriptor is left, and says so in an event.
  const child: ChildProcess = spawn(program, args, { stdio: ['inherit', 'pipe', 'inherit'], env })
  // Ctrl-C reaches every process of a terminal's foreground group by itself, and for many programs the second means: at once.
  const signals = stdout.isTTY || stderr.isTTY ? forwarded.filter((signal) => signal !== 'SIGINT') : forwarded
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of signals) events.on(signal, forward)
  const chunks: Uint8Array[] = []
  let size = 0
  child.stdout?.on('data', (chunk: Uint8Array) => {
    size += chunk.length
    if (size <= most) {
      chunks.push(chunk)
      return
    }
    // It ends by SIGPIPE; one that ignores that is asked to.
    child.stdout?.destroy()
    child.kill()
  })
  try {
    const ending = await new Promise<string | undefined>((resolve) => {
      child.on('error', (error) => resolve(`could not be started (${describeCode(codeOf(error) ?? error.message)})`))
      child.on('close', (code, signal) => resolve(endingOf(code, signal)))
    })
    const problem = size > most ? `printed more than ${most / 1024 / 1024} MiB` : ending
    return { output: Buffer.concat(chunks), problem: problem && `${basename(program)} ${problem}` }
  } finally {
    for (const signal of signals) events.removeListener(signal, forward)
  }
}

function endingOf(code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal !== null) return `was ended by ${signal}`
  return code === 0 ? undefined : `ended with exit code ${String(code)}`
}
