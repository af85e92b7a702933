import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { endsWithin } from '../deadline.js'
import { codeOf, messageOf } from '../errors.js'
import { Disk, DurableWriteError, type HeldLock, NodeFileSystem } from '../durable/index.js'
import type { Log } from '../log.js'
import { beside } from './file-systems.js'
import { isRunning } from './process-identity.js'
import { readStatusFile, type AgentStatus } from './status-file.js'

/*
 * One agent for a state directory: two would publish everything twice, run every hook twice, and write one status. The lock is a
 * flock(2): it ends with the process, whatever ends it, and is seen from other PID namespaces.
 */

const lockName = 'agent.lock'

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
  const locking = beside(stateDirectory, () => new Disk().lock(join(stateDirectory, lockName), patience, undefined))
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

async function busy(stateDirectory: string, cause: DurableWriteError): Promise<DurableWriteError> {
  const other = (await readStatusFile(stateDirectory).catch(() => undefined))?.agent
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

/** undefined: there is no lock, or this user may not open it. */
async function isLocked(stateDirectory: string): Promise<boolean | undefined> {
  const fs = new NodeFileSystem()
  const opened: number[] = []
  try {
    const directory = await fs.openPath(await realpath(stateDirectory))
    opened.push(directory)
    const file = await fs.openFile(directory, lockName)
    opened.push(file)
    return !fs.tryLock(file)
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    return undefined
  } finally {
    for (const descriptor of opened.reverse()) await fs.close(descriptor)
  }
}
