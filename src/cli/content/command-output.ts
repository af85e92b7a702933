import type { ChildProcess } from 'node:child_process'
import { basename } from 'node:path'
import { codeOf, describeCode } from '../../errors.js'
import { startErrorCode } from '../../program-path.js'
import { NotPublished } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'

const forwarded = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const

/**
 * Runs a command to its end, with this process's standard input and standard error, and gives what it prints: at most `most` bytes. It
 * forwards each signal that this process receives, and awaits the command's end. `path`: the target that stays if the command fails.
 * @throws NotPublished at its end, where it failed; the message repeats neither its arguments, which may hold a secret, nor its output
 */
export async function* outputOf(
  [program = '', ...args]: readonly string[],
  {
    io: { events, env, stdout, stderr },
    most,
    path,
  }: { readonly io: Io; readonly most: number; readonly path: string },
): AsyncIterable<Uint8Array> {
  const { spawn } = await import('node:child_process')
  // Where no file descriptor is free, Node answers a child without streams, and reports the failure in an event.
  const child: ChildProcess = spawn(program, args, { stdio: ['inherit', 'pipe', 'inherit'], env })
  // Ctrl-C reaches every process of a terminal's foreground group by itself, and for many programs the second means: at once.
  const signals = stdout.isTTY || stderr.isTTY ? forwarded.filter((signal) => signal !== 'SIGINT') : forwarded
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of signals) events.on(signal, forward)
  const ending = new Promise<string | undefined>((resolve) => {
    let hasStarted = true
    child.on('error', (error) => {
      hasStarted = false
      void startErrorCode(codeOf(error), program, env['PATH']).then((code) => {
        resolve(`could not be started (${describeCode(code ?? error.message)})`)
      })
    })
    child.on('close', (code, signal) => {
      if (hasStarted) resolve(endingOf(code, signal))
    })
  })
  let size = 0
  let done = false
  try {
    for await (const chunk of (child.stdout ?? []) as AsyncIterable<Uint8Array>) {
      size += chunk.length
      if (size > most) break
      yield chunk
    }
    done = size <= most
  } finally {
    // The command ends by SIGPIPE, or by this SIGTERM if it ignores that.
    if (!done) child.kill()
    const problem = await ending
    for (const signal of signals) events.removeListener(signal, forward)
    if (size > most) throw new NotPublished(`${basename(program)} printed more than ${most / 1024 / 1024} MiB`, path)
    if (problem !== undefined) throw new NotPublished(`${basename(program)} ${problem}`, path)
  }
}

function endingOf(code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal !== null) return `was ended by ${signal}`
  return code === 0 ? undefined : `ended with exit code ${String(code)}`
}
