/**
 * The program under test, stopped by strace between the exchange and barrier 2: its renameat2 does not return before it is released
 * to go on. What else happens to disk or process can then happen at the one instant at which the new content is visible and
 * not yet durable.
 */
import { execFileSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { readProc, signalRunning } from '../../processes.js'
import { LineProcess } from './process-lines.js'

/** Milliseconds within which the exchange is seen. */
const patience = 60_000

const strace = [
  'strace',
  '-f',
  '-qq',
  '-o',
  '/dev/null',
  '-e',
  'trace=renameat2',
  '-e',
  // Sent as the call begins, the signal takes effect as it ends (ptrace(2), syscall-enter-stop).
  'inject=renameat2:signal=SIGSTOP',
]

export function canHold(): boolean {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export function heldActor(): LineProcess {
  const program = new URL('./actor-program.js', import.meta.url).pathname
  // strace complains of threads that end while it stops them.
  return new LineProcess([...strace, process.execPath, program], 'ignore')
}

/** Resolves once another inode is at the path than at the time of the call, or one at all. */
export async function exchanged(path: string): Promise<void> {
  const inode = (): number | undefined => lstatSync(path, { throwIfNoEntry: false })?.ino
  const before = inode()
  const deadline = Date.now() + patience
  while (inode() === before) {
    if (Date.now() > deadline) throw new Error(`no exchange of ${path} was seen`)
    await delay(1)
  }
}

/** Kills the program, not strace, which then ends by itself. */
export async function killHeld(actor: LineProcess): Promise<void> {
  signal(actor, 'SIGKILL')
  await actor.end()
}

/** Lets the program go on. */
export function release(actor: LineProcess): void {
  signal(actor, 'SIGCONT')
}

function signal({ pid }: LineProcess, name: NodeJS.Signals): void {
  const children = readProc(`/proc/${pid}/task/${pid}/children`).trim()
  for (const child of children.split(' ')) if (child !== '') signalRunning(Number(child), name)
}
