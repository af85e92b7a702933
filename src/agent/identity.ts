import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { endsWithin } from '../deadline.js'
import { OwnFile } from '../durable/index.js'
import { codeOf, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { beside } from './file-systems.js'
import { hadAgent, lockForPass } from './state-lock.js'

/*
 * The agent's identity: a random name in the state directory, which goes into the record of each publication. Two agents with a state
 * directory each are two, also on one node; an agent and `sync` with the same one are one. It is no secret, and proves nothing.
 */

const form = /^[0-9a-f]{32}$/

/** Milliseconds to wait for a disk that does not answer. */
const patience = 3_000

function fileIn(stateDirectory: string): string {
  return join(stateDirectory, 'agent.id')
}

/** undefined: no agent has kept its state there yet. */
export async function readIdentity(stateDirectory: string): Promise<string | undefined> {
  const file = fileIn(stateDirectory)
  let text: string
  try {
    text = (await readFile(file, 'latin1')).trim()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
  if (form.test(text)) return text
  throw new Error(`${file} is not a file of the agent: remove it; the next start makes another one`)
}

async function readOrMake(stateDirectory: string): Promise<string> {
  const known = await readIdentity(stateDirectory)
  if (known !== undefined) return known
  const identity = randomBytes(16).toString('hex')
  await new OwnFile(fileIn(stateDirectory)).replace(`${identity}\n`)
  return identity
}

/**
 * For the agent that has the state directory: durable on return, made where there is none. undefined where the disk does not let it: its
 * publications then name no agent, and no agent removes them by itself.
 */
export async function agentIdentity(stateDirectory: string, log: Log): Promise<string | undefined> {
  let identity: string | undefined
  let problem = `${stateDirectory} does not answer`
  const making = beside(stateDirectory, () => readOrMake(stateDirectory)).then(
    (found) => void (identity = found),
    (error: unknown) => void (problem = messageOf(error)),
  )
  await endsWithin(making, patience)
  if (identity === undefined)
    log.warn(
      {},
      `this agent has no identity: ${problem}; what it publishes does not name it, and onDrop: remove removes nothing`,
    )
  return identity
}

/**
 * For one pass: the identity of the agent with this state directory. It makes none in a missing directory, which may go with its container.
 */
export async function passIdentity(stateDirectory: string): Promise<string | undefined> {
  try {
    const known = await readIdentity(stateDirectory)
    if (known !== undefined) return known
  } catch {
    return undefined
  }
  if (!(await hadAgent(stateDirectory))) return undefined
  const lock = await lockForPass(stateDirectory)
  try {
    return await (lock ? readOrMake(stateDirectory) : readIdentity(stateDirectory))
  } catch {
    return undefined
  } finally {
    await lock?.release()
  }
}
