import { join } from 'node:path'
import { encodeLine, readLines } from '../../checked-lines.js'
import type { DirectoryStatus, OperationStatus } from './status-file.js'

/*
 * The status of many directories, so that a change of one writes no other: STATE/status.lines has a line for each directory, and then one for
 * each change since, of those that have changed. A line is `SHA-256 of the JSON, a space, JSON`, as in a record. The file is replaced as a
 * whole now and then; each added line is durable before the next one. So a crash can tear only its end, which then says nothing.
 */

/** What a line says; the first one names its file. */
interface StatusLine {
  readonly directories: readonly DirectoryStatus[]
  /** When the agent wrote this. */
  readonly at: string
  readonly operations: readonly OperationStatus[]
}

interface FirstLine {
  readonly id: string
  /** How many directories there are. */
  readonly count: number
}

export interface StatusLines {
  readonly id: string
  readonly at: string
  readonly directories: readonly DirectoryStatus[]
  readonly operations: readonly OperationStatus[]
}

export function statusLinesIn(stateDirectory: string): string {
  return join(stateDirectory, 'status.lines')
}

export function encodeStatusLines({ id, at, directories, operations }: StatusLines): string {
  const first: FirstLine = { id, count: directories.length }
  const each = directories.map((directory) => encodeStatusLine({ at, directories: [directory], operations }))
  return [jsonLine(first), ...each].join('')
}

export function encodeStatusLine(line: StatusLine): string {
  return jsonLine(line)
}

function jsonLine(value: object): string {
  return Buffer.from(encodeLine(value)).toString('utf8')
}

/** undefined: it is not whole. */
export function parseStatusLines(text: string): StatusLines | undefined {
  const { lines } = readLines(text)
  // The agent adds nothing behind a line that it could not write whole.
  if (!text.startsWith(lines.map((line) => line.text).join(''))) return undefined
  const [first, ...rest] = lines.map(({ value }) => value)
  if (!isFirstLine(first) || !rest.every(isStatusLine)) return undefined
  const directories = new Map(rest.flatMap((line) => line.directories.map((status) => [status.path, status])))
  const last = rest.at(-1)
  if (last === undefined || directories.size !== first.count) return undefined
  return { id: first.id, at: last.at, directories: [...directories.values()], operations: last.operations }
}

function isFirstLine(value: object | undefined): value is FirstLine {
  const { id, count } = (value ?? {}) as Partial<Record<keyof FirstLine, unknown>>
  return typeof id === 'string' && typeof count === 'number'
}

function isStatusLine(value: object): value is StatusLine {
  const { at, directories, operations } = value as Partial<Record<keyof StatusLine, unknown>>
  return typeof at === 'string' && Array.isArray(directories) && Array.isArray(operations)
}
