import { readdir, readFile, readlink } from 'node:fs/promises'
import { codeOf } from '../errors.js'

/** Which process a pid means: it has another meaning in another pid namespace, and another one later. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks from the boot to its start (proc_pid_stat(5), field 22). */
  readonly startTicks: number
  /** `pid:[4026531836]`. */
  readonly pidNamespace: string
}

/** Of this process. */
export async function ownIdentity(): Promise<ProcessIdentity> {
  const [startTicks, pidNamespace] = await Promise.all([startOf('self'), readlink('/proc/self/ns/pid')])
  return { pid: process.pid, startTicks, pidNamespace }
}

/** Whether exactly this process runs; `elsewhere`: only processes of its pid namespace, such as a container, can tell. */
export async function isRunning({ pid, startTicks, pidNamespace }: ProcessIdentity): Promise<boolean | 'elsewhere'> {
  if ((await readlink('/proc/self/ns/pid')) !== pidNamespace) return 'elsewhere'
  return (await startOf(String(pid)).catch(() => undefined)) === startTicks && !(await isDying(pid))
}

async function startOf(pid: string): Promise<number> {
  return Number((await statOf(pid))[19])
}

/** Clock ticks from the boot to the start of a process that has ended and that its parent has not asked for; undefined for any other. */
export async function startOfZombie(pid: string): Promise<string | undefined> {
  const stat = await statOf(pid).catch(() => [])
  return stat[0] === 'Z' ? stat[19] : undefined
}

/** Fields of proc_pid_stat(5), from the third one on: the state. */
async function statOf(path: string): Promise<string[]> {
  const text = await readFile(`/proc/${path}/stat`, 'utf8')
  // The name, in parentheses, may hold anything.
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

/**
 * Whether a thread of a process, by default this one, waits in the kernel, and for no signal: as for a disk that does not answer. false also
 * where this process has no descriptor left to look with (EMFILE).
 */
export async function hasBlockedThread(pid: number | 'self' = 'self'): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  // A thread that has ended meanwhile waits for nothing.
  const stats = await Promise.all(threads.map((thread) => statOf(`${pid}/task/${thread}`).catch(() => [])))
  return stats.some(([state]) => state === 'D')
}

/**
 * Whether a process has been killed, and is there only because threads of it wait in the kernel, for a disk perhaps: none of its threads
 * will run its program again. It keeps its locks (flock) and its ports until the last of them has ended. Its main thread is a zombie then.
 */
export async function isDying(pid: number): Promise<boolean> {
  try {
    const threads = await readdir(`/proc/${pid}/task`)
    const ending = await Promise.all(threads.map((thread) => isEnding(`${pid}/task/${thread}`)))
    return ending.every(Boolean)
  } catch {
    // It has ended by now, or is another user's and hidden.
    return false
  }
}

/** PF_EXITING of include/linux/sched.h. */
const exiting = 0x4n

/** SIGKILL in a mask of signals, as proc_pid_status(5) shows them. */
const killed = 1n << 8n

/** A fatal signal leaves SIGKILL pending for each thread (kernel/signal.c, complete_signal), until that one takes it and exits. */
async function isEnding(thread: string): Promise<boolean> {
  try {
    const [state = '', , , , , , flags = '0'] = await statOf(thread)
    if (state === 'Z' || state === 'X' || (BigInt(flags) & exiting) !== 0n) return true
    const pending = /^SigPnd:\s*([0-9a-f]+)$/m.exec(await readFile(`/proc/${thread}/status`, 'utf8'))?.[1]
    return pending !== undefined && (BigInt(`0x${pending}`) & killed) !== 0n
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(codeOf(error) ?? '')) return true
    throw error
  }
}
