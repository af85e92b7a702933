import { readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { endsWithin } from '../deadline.js'
import { codeOf, messageOf } from '../errors.js'
import { Disk, NodeFileSystem } from '../durable/index.js'
import type { HeldLock } from '../durable/path/index.js'
import { DurableWriteError } from '../durable/errors.js'
import { silent, type Log } from '../log.js'
import { beside } from './file-systems.js'
import { dyingHolders } from './lock-holders.js'
import { isRunning } from './process-identity.js'
import { readAgentStatus } from './report/read-status.js'
import type { AgentStatus } from './report/status-file.js'

/*
 * One agent for a state directory: two would publish everything twice, run every hook twice, and write one status. The lock is a
 * flock(2): it ends with the process, by any end, and other PID namespaces see it.
 *
 * A process that was killed while one of its threads waits for a disk that does not answer ends only when the disk answers, and keeps
 * the lock until then. It does nothing any more, so that it must not keep the next agent from the healthy disks: that one takes the next lock
 * of a row. So an agent holds one lock of the row, and has seen after it took it that no living process holds another one. The locks of the
 * targets on that disk stay with the dead process: a write that it had begun may still reach the disk.
 */

const lockName = 'agent.lock'
const lockNames = /^agent\.lock(\.\d+)?$/

/** Milliseconds to wait for an agent that is ending; and for a disk that does not answer. */
const patience = 2_000
const diskPatience = 3_000

/**
 * Takes the state directory for this agent. Where it cannot be locked, for it is read-only or its disk does not answer, the agent
 * runs without: it publishes all the same.
 * @throws DurableWriteError, with reason Busy where another agent has it
 */
export async function lockState(stateDirectory: string, log: Log): Promise<HeldLock | undefined> {
  const without = (cause: string): void =>
    log.warn({}, `could not lock ${stateDirectory}: ${cause}; nothing keeps another agent from using it`)
  const locking = beside(stateDirectory, () => takeFirst(stateDirectory, log))
  if (!(await endsWithin(locking, diskPatience))) {
    locking.catch(() => undefined)
    without('it does not answer')
    return undefined
  }
  try {
    return await locking
  } catch (error) {
    if (error instanceof DurableWriteError && error.reason === 'Busy') throw await busy(stateDirectory, error)
    without(messageOf(error))
    return undefined
  }
}

/** Takes the state directory for one pass, after `wait` milliseconds at most; undefined: an agent has it, or this user may not. */
export async function lockForPass(stateDirectory: string, wait = patience): Promise<HeldLock | undefined> {
  return takeFirst(stateDirectory, silent, wait).catch(() => undefined)
}

/** Whether an agent has locked the state directory before. */
export async function hadAgent(stateDirectory: string): Promise<boolean> {
  return (await locksIn(stateDirectory).catch(() => [])).length > 0
}

/** Takes the first lock of the row that no dying process holds. */
async function takeFirst(stateDirectory: string, log: Log, wait = patience): Promise<HeldLock> {
  const patienceEnds = performance.now() + wait
  for (let number = 1; ; number++) {
    const path = join(stateDirectory, number === 1 ? lockName : `${lockName}.${number}`)
    const lock = await take(path, patienceEnds)
    if (!('dying' in lock)) return await alone(stateDirectory, path, lock, patienceEnds)
    const [pid] = lock.dying
    log.warn(
      { pid, path },
      `process ${pid}, an agent that was killed, cannot end before a disk answers it, and keeps ${path} until then: this agent takes ${lockName}.${number + 1}, and publishes to the other disks`,
    )
  }
}

/** @throws DurableWriteError, with reason Busy where a living process holds it for so long */
async function take(path: string, until: number): Promise<HeldLock | { readonly dying: readonly number[] }> {
  const before = await dyingHolders(path)
  if (before.length > 0) return { dying: before }
  try {
    return await new Disk().lock(path, Math.max(until - performance.now(), 0), undefined)
  } catch (error) {
    // Its holder may have been killed since.
    const now = isBusy(error) ? await dyingHolders(path) : []
    if (now.length === 0) throw error
    return { dying: now }
  }
}

/** Lets go again where a living process holds another lock of the row. */
async function alone(stateDirectory: string, path: string, lock: HeldLock, until: number): Promise<HeldLock> {
  try {
    for (const other of await locksIn(stateDirectory)) {
      const free = other === path ? undefined : await take(other, until)
      if (free && 'release' in free) await free.release()
    }
    return lock
  } catch (error) {
    await lock.release()
    throw error
  }
}

async function locksIn(stateDirectory: string): Promise<string[]> {
  const names = await readdir(stateDirectory)
  return names.filter((name) => lockNames.test(name)).map((name) => join(stateDirectory, name))
}

function isBusy(error: unknown): boolean {
  return error instanceof DurableWriteError && error.reason === 'Busy'
}

async function busy(stateDirectory: string, cause: DurableWriteError): Promise<DurableWriteError> {
  const other = await readAgentStatus(stateDirectory).catch(() => undefined)
  const who = other && other.stoppedAt === undefined ? `: process ${other.pid}` : ''
  return new DurableWriteError(`another agent keeps its state in ${stateDirectory}${who}`, {
    code: cause.code,
    syscall: cause.syscall,
    path: stateDirectory,
    reason: 'Busy',
    state: 'nothing was changed',
    advice: 'stop it, or give each agent a stateDirectory of its own',
    cause,
  })
}

/** Whether an agent runs that keeps its state there: by its lock, or by its process where the lock does not tell. */
export async function isAgentRunning(stateDirectory: string, agent: AgentStatus): Promise<boolean> {
  const locked = await isLocked(stateDirectory)
  if (locked === true) return true
  if (agent.stoppedAt !== undefined) return false
  const process = agent.process && (await isRunning(agent.process))
  // An agent that could not take the lock runs without it.
  if (locked === false) return process === true
  // Of another PID namespace, or of a version that did not say which process it is: it wrote last, and did not end.
  return process !== false
}

/** Whether a living process holds a lock of the row. undefined: there is no lock, or this user may not open it. */
async function isLocked(stateDirectory: string): Promise<boolean | undefined> {
  let locked: boolean | undefined
  for (const path of await locksIn(stateDirectory).catch(() => [])) {
    const held = await isHeld(path)
    if (held === true && (await dyingHolders(path)).length === 0) return true
    if (held !== undefined) locked = false
  }
  return locked
}

async function isHeld(path: string): Promise<boolean | undefined> {
  const fs = new NodeFileSystem()
  const opened: number[] = []
  try {
    const directory = await fs.openPath(await realpath(dirname(path)))
    opened.push(directory)
    const file = await fs.openFile(directory, basename(path))
    opened.push(file)
    return !fs.tryLock(file)
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    return undefined
  } finally {
    for (const descriptor of opened.reverse()) await fs.close(descriptor)
  }
}
