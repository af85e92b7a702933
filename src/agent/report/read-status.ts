/** Reads the agent's status from its stateDirectory. */
import { readFile } from 'node:fs/promises'
import { readError } from '../../durable/errors.js'
import { codeOf } from '../../errors.js'
import {
  type AgentStatus,
  type DirectoryStatus,
  isDirectoryStatus,
  parseStatus,
  type StatusDocument,
  type StatusFile,
  statusFileIn,
} from './status-file.js'
import { parseStatusLines, type StatusLines, statusLinesIn } from './status-lines.js'

/** Reads the status; undefined where there is none. Rejects when it cannot be read, or is no status. */
export async function readStatusFile(stateDirectory: string): Promise<StatusDocument | undefined> {
  let before: string | undefined
  for (;;) {
    const text = await readIfThere(statusFileIn(stateDirectory))
    if (text === undefined) return undefined
    const { pieces, ...document } = parseStatusFile(text, stateDirectory)
    if (pieces === undefined) return document
    const path = statusLinesIn(stateDirectory)
    const said = parseStatusLines((await readIfThere(path)) ?? '')
    if (said !== undefined && said.directories.every(isDirectoryStatus)) return together(document, pieces, said)
    // An agent that has just begun to keep all in one file has removed the other.
    if (text === before) {
      throw new Error(
        `${path} is damaged or missing: a running agent writes it again within five minutes, or at "holdfast reload"`,
      )
    }
    before = text
  }
}

/** The agent's own part of the status, even if the part of its directories is damaged; undefined without a status. */
export async function readAgentStatus(stateDirectory: string): Promise<AgentStatus | undefined> {
  const text = await readIfThere(statusFileIn(stateDirectory))
  return text === undefined ? undefined : parseStatusFile(text, stateDirectory).agent
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined
    throw readError(path, error)
  }
}

function parseStatusFile(text: string, stateDirectory: string): StatusFile {
  const document = parseStatus(text)
  if (document !== undefined) return document
  throw new Error(
    `${statusFileIn(stateDirectory)} is not a status file of the agent: remove it; a running agent writes it again`,
  )
}

/** Each directory as its last line says. Confirmations that came after it are in status.json, where that counts the same directories. */
function together(
  { agent }: StatusFile,
  { id, confirmed }: NonNullable<StatusFile['pieces']>,
  said: StatusLines,
): StatusDocument {
  const written = Date.parse(agent.writtenAt)
  const confirmedAt = ({ confirmedAt: at }: DirectoryStatus, index: number): string | null => {
    const age = said.id === id ? confirmed[index] : undefined
    const later = typeof age === 'number' ? new Date(written - age * 1000).toISOString() : null
    return later !== null && (at === null || later > at) ? later : at
  }
  return {
    agent: said.at > agent.writtenAt ? { ...agent, writtenAt: said.at } : agent,
    directories: said.directories.map((directory, index) => ({
      ...directory,
      confirmedAt: confirmedAt(directory, index),
    })),
    operations: said.operations,
  }
}
