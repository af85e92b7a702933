import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'

/** A program with all that it starts, which end together. */
export function startGroup(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  return spawn(command, args, { ...options, detached: true })
}

export function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All of them have ended.
  }
}

interface Ended {
  /** None where a signal has ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly hangs: boolean
  readonly output: string
  readonly errors: string
}

/** Runs it to its end, or for so many milliseconds. Its children end with it. */
export async function runGroup(
  command: string,
  args: readonly string[],
  options: Pick<SpawnOptions, 'cwd' | 'env'>,
  patience: number,
): Promise<Ended> {
  const child = startGroup(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  let hangs = false
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const timer = setTimeout(() => {
    hangs = true
    endGroup(child)
  }, patience)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    // A child that still runs holds its pipes open.
    child.once('exit', () => endGroup(child))
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, hangs, output, errors })
    })
  })
}
