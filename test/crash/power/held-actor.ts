/**
 * The program under test, held by strace between the exchange and barrier 2: the return of renameat2 is delayed. What else
 * happens to disk or process can then happen at the one instant at which the new content is visible and not yet durable.
 */
import { execFileSync } from 'node:child_process'
import { lstatSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { LineProcess } from './process-lines.js'

/** Microseconds for which renameat2 does not return. */
const held = 400_000
/** Milliseconds within which the exchange is seen. */
const patience = 20_000

const strace = [
  'strace',
  '-f',
  '-qq',
  '-o',
  '/dev/null',
  '-e',
  'trace=renameat2',
  '-e',
  `inject=renameat2:delay_exit=${held}`,
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
  // strace complains of threads that end while it delays one.
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
  const { pid } = actor
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ')
  for (const child of children) process.kill(Number(child), 'SIGKILL')
  await actor.end()
}
