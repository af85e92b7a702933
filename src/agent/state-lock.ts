import { open, realpath, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { tryLock } from '../../native/index.js'
import { endsWithin, sleep } from '../deadline.js'
import { codeOf, messageOf } from '../errors.js'
import { DurableCalls, system, flockHolders } from '../durable/index.js'
import type { HeldLock } from '../durable/path/index.js'
import { DurableWriteError } from '../durable/errors.js'
import { silent, type Log } from '../log.js'
import { beside, fileSystemOf } from './file-systems.js'
import { isRunning, isDying } from './process-identity.js'
import { readAgentStatus } from './report/read-status.js'
import type { AgentStatus } from './report/status-file.js'

/*
 * One agent for a state directory: two would publish everything twice, run every hook twice, and write one status. The lock is a
 * flock(2): it ends with the process, by any end, and other PID namespaces see it.
 *
 * A process that was killed while one of its threads waits for a disk that does not answer ends only when the disk answers, and keeps
 * the lock until then. It does nothing any more, so that it must not keep the next agent from the healthy disks: that one takes the name of the
 * lock away, and makes another file. The locks of the targets on that disk stay with the dead process: a write that it had begun may still
 * reach the disk.
 */

export interface StateLock extends HeldLock {
  /** The file has lost its name, or another one has it: then it keeps no agent out. A disk that does not say so counts as no loss. */
  isLost(): Promise<boolean>
}

export const lockName = 'agent.lock'

const lockIn = (stateDirectory: string): string => join(stateDirectory, lockName)

/** Milliseconds to wait for an agent that is ending; and for a disk that does not answer. */
const patience = 2_000
const diskPatience = 3_000

/**
 * Takes the state directory for this agent. Where it cannot be locked, for it is read-only or its disk does not answer, the agent
 * runs without: it publishes all the same.
 * @throws DurableWriteError, with reason Busy where another agent has it
 */
export async function lockState(stateDirectory: string, log: Log): Promise<StateLock | undefined> {
  const without = (cause: string): void =>
    log.warn({}, `could not lock ${stateDirectory}: ${cause}; nothing keeps another agent from using it`)
  const locking = beside(stateDirectory, () => take(stateDirectory, log))
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
  return take(stateDirectory, silent, wait).catch(() => undefined)
}

/** Whether an agent has locked the state directory before. */
export async function hadAgent(stateDirectory: string): Promise<boolean> {
  return stat(lockIn(stateDirectory)).then(
    () => true,
    () => false,
  )
}

/** @throws DurableWriteError, with reason Busy where a living process holds it for so long */
async function take(stateDirectory: string, log: Log, wait = patience): Promise<StateLock> {
  const until = performance.now() + wait
  const path = lockIn(stateDirectory)
  for (;;) {
    await takeFromTheDying(stateDirectory, log, until)
    try {
      return await withLoss(
        path,
        await new DurableCalls().lock(path, Math.max(until - performance.now(), 0), undefined),
      )
    } catch (error) {
      // The lock's holder may have been killed since.
      const isBusy = error instanceof DurableWriteError && error.reason === 'Busy'
      if (!isBusy || (await dyingHolders(path)).length === 0) throw error
    }
  }
}

/** One process at a time, by a lock of the directory: so none takes away the file that another one has just made. */
async function takeFromTheDying(stateDirectory: string, log: Log, until: number): Promise<void> {
  const path = lockIn(stateDirectory)
  if ((await dyingHolders(path)).length === 0) return
  const directory = await open(stateDirectory, 'r')
  try {
    while (!tryLock(directory.fd)) {
      if (performance.now() > until) return
      await sleep(20)
    }
    const [pid] = await dyingHolders(path)
    if (pid === undefined) return
    await unlink(path)
    log.warn(
      { pid, path },
      `process ${pid}, an agent that was killed, cannot end before a disk answers it: this agent takes ${path} from it, and publishes to the other disks`,
    )
  } finally {
    await directory.close()
  }
}

async function withLoss(path: string, lock: HeldLock): Promise<StateLock> {
  const entry = async (): Promise<string> => {
    const { dev, ino } = await stat(path, { bigint: true })
    return `${dev}:${ino}`
  }
  const own = await entry()
  const now = (): Promise<string> =>
    entry().catch((error: unknown) => (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '') ? 'gone' : own))
  return { release: () => lock.release(), isLost: async () => (await now()) !== own }
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

/** Whether a living process holds the lock. undefined: there is none, or this user may not open it. */
async function isLocked(stateDirectory: string): Promise<boolean | undefined> {
  const path = lockIn(stateDirectory)
  const held = await isLockHeld(path)
  return held === true ? (await dyingHolders(path)).length === 0 : held
}

async function isLockHeld(path: string): Promise<boolean | undefined> {
  const opened: number[] = []
  try {
    const directory = await system.openPath(await realpath(dirname(path)))
    opened.push(directory)
    const file = await system.openFile(directory, basename(path))
    opened.push(file)
    return !system.tryLock(file)
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    return undefined
  } finally {
    for (const descriptor of opened.reverse()) await system.close(descriptor)
  }
}

/**
 * The processes that hold the flock(2) of a file, where all of them are dying; none where the lock is free, where a living process holds
 * it, and where this process does not see the holder, as in a container without hostPID.
 * @internal
 */
export async function dyingHolders(path: string): Promise<readonly number[]> {
  const holders = await holdersOf(path).catch(() => [])
  const dying = await Promise.all(holders.map(isDying))
  return dying.every(Boolean) ? holders : []
}

/** Rejects where there is no such file. */
async function holdersOf(path: string): Promise<number[]> {
  const real = await realpath(path)
  const { ino } = await stat(real, { bigint: true })
  return flockHolders(fileSystemOf(real), ino)
}
