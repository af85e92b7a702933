import { readFile, readlink } from 'node:fs/promises'

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

/** Whether this very process runs; `elsewhere`: only processes of its own pid namespace, such as a container, can say. */
export async function isRunning({ pid, startTicks, pidNamespace }: ProcessIdentity): Promise<boolean | 'elsewhere'> {
  if ((await readlink('/proc/self/ns/pid')) !== pidNamespace) return 'elsewhere'
  return (await startOf(String(pid)).catch(() => undefined)) === startTicks
}

async function startOf(pid: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name, in parentheses, may hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return Number(fields[19])
}
