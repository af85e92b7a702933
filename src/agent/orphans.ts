import { readFile } from 'node:fs/promises'
import { reap } from '../../native/index.js'
import { startOfZombie } from './process-identity.js'

/** Milliseconds between two looks. */
const pause = 1000

/**
 * As the first process of a container, this one inherits what hooks and probes leave in the background, and the kernel keeps each that has ended until
 * its parent asks for it (pid_namespaces(7)): in the end the container has no process ID left. Node asks for its own children in the turn of
 * its loop in which it hears of their end: a process that is dead in two turns is no child of Node. The agent leaves children of other threads alone.
 */
export function reapOrphans(): void {
  if (process.pid !== 1) return
  let dead = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const look = async () => {
    const found = await zombies()
    for (const [pid, life] of found) if (dead.has(life)) reap(pid)
    dead = new Set(found.map(([, life]) => life).filter((life) => !dead.has(life)))
    timer = undefined
    if (dead.size > 0) wake()
  }
  const wake = () => (timer ??= setTimeout(() => void look(), pause).unref())
  process.on('SIGCHLD', wake)
}

/** Children of the main thread, which inherits orphans: each with a text that no later process of its number has. */
async function zombies(): Promise<[pid: number, life: string][]> {
  // A kernel without CONFIG_PROC_CHILDREN has no such file: the zombies stay.
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'latin1').catch(() => '')
  const pids = children.split(' ').filter((pid) => pid !== '')
  const lives = await Promise.all(
    pids.map(async (pid): Promise<[number, string]> => [Number(pid), `${pid} ${await startOfZombie(pid)}`]),
  )
  return lives.filter(([pid, life]) => life !== `${pid} undefined`)
}
