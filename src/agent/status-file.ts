import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Condition } from './conditions.js'
import type { DirectoryStatus, StatusDocument } from './status-document.js'

/** Where the agent keeps its status. */
export function statusFileIn(stateDirectory: string): string {
  return join(stateDirectory, 'status.json')
}

/** Reads a status file; undefined where there is none. Rejects when it cannot be read, or is no status. */
export async function readStatusFile(stateDirectory: string): Promise<StatusDocument | undefined> {
  let text: string
  try {
    text = await readFile(statusFileIn(stateDirectory), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['ENOENT', 'ENOTDIR'].includes(String(error.code)))
      return undefined
    throw error
  }
  const document = parse(text)
  if (isStatusDocument(document)) return document
  throw new Error(
    `${statusFileIn(stateDirectory)} is not a status as the agent writes it: remove it; a running agent writes it anew`,
  )
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isStatusDocument(value: unknown): value is StatusDocument {
  if (!hasFields(value, ['agent', 'directories']) || !Array.isArray(value.directories)) return false
  return hasFields(value.agent, ['version', 'writtenAt']) && value.directories.every(isDirectoryStatus)
}

function isDirectoryStatus(value: unknown): value is DirectoryStatus {
  return (
    hasFields(value, ['path', 'conditions', 'objects']) &&
    Array.isArray(value.objects) &&
    Array.isArray(value.conditions) &&
    value.conditions.every(isCondition)
  )
}

function isCondition(value: unknown): value is Condition {
  return (
    hasFields(value, ['type', 'status', 'reason', 'message', 'lastTransitionTime']) &&
    Object.values(value).every((field) => typeof field === 'string')
  )
}

function hasFields<Name extends string>(value: unknown, names: readonly Name[]): value is Record<Name, unknown> {
  return typeof value === 'object' && value !== null && names.every((name) => name in value)
}
