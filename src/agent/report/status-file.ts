import { join } from 'node:path'
import type { ProcessIdentity } from '../process-identity.js'
import type { Pending } from '../workqueue.js'
import type { Condition, PublishedObject } from '../conditions.js'
import type { DirectoryFacts, DirectoryState } from '../directory-state.js'

/** What `holdfast status -o json` prints, and what the agent keeps in STATE/status.json. Times are RFC 3339. */
export interface StatusDocument {
  /** null: no agent has reported; the directories' status comes from the configuration and the disk alone. */
  readonly agent: AgentStatus | null
  readonly directories: readonly DirectoryStatus[]
  /** The agent's operations at the time of this file; absent without an agent, or from an older version. */
  readonly operations?: readonly OperationStatus[]
}

export interface OperationStatus {
  /** `publish /etc/certs`, as the log names it. */
  readonly name: string
  /** Runs; is due, and waits for others of its file system; or has failed, and waits for its next try. */
  readonly state: Pending['state']
  /** When it began, became due, or failed last. */
  readonly since: string
  /** From 1: how often it was tried in a row, with this time. */
  readonly attempt: number
  /** null: it runs, or will as soon as it can. */
  readonly nextTry: string | null
}

export interface AgentStatus {
  readonly version: string
  /** The node's name, as the cluster calls it. */
  readonly node: string
  readonly pid: number
  readonly startedAt: string
  /** When this document was written. A running agent writes at least every five minutes. */
  readonly writtenAt: string
  /** Present once the agent has ended in order. */
  readonly stoppedAt?: string
  /** Which process it is; absent where an older version has written this. */
  readonly process?: ProcessIdentity
  /** The configuration that is in force; absent where an older version has written this. */
  readonly configuration?: { readonly file: string; readonly digest: string }
  /** When the configuration was last read again: put in force, or refused. */
  readonly reloadedAt?: string
  /** Why the configuration file, read again, was not put in force. */
  readonly configurationInvalid?: string
  /** Why health and metrics are not served at the configured address. */
  readonly serverProblem?: string
  /** A reader adds this: the disk of the stateDirectory does not answer, and the file's text is what was written before. */
  readonly stateProblem?: string
}

export interface DirectoryStatus {
  readonly path: string
  readonly conditions: readonly Condition[]
  readonly objects: readonly PublishedObject[]
  readonly digest: string | null
  readonly publishedAt: string | null
  readonly confirmedAt: string | null
  /** Names of the hooks that have not run to success for this digest yet. */
  readonly pendingHooks: readonly string[]
}

/** The names of the hooks that have yet to run. A hook that the configuration has dropped has no name, and leaves the list at its turn. */
export function pendingHookNames({ record, configuration }: DirectoryFacts): string[] {
  return configuration.afterPublish.filter(({ key }) => record?.pendingHooks.includes(key)).map(({ name }) => name)
}

export function directoryStatus({ facts }: DirectoryState): DirectoryStatus {
  const { configuration, published, fresh, objects, record, confirmedAt } = facts
  return {
    path: configuration.path,
    conditions: [published, fresh].filter((condition) => condition !== undefined),
    objects,
    digest: record?.digest ?? null,
    publishedAt: record?.publishedAt.toISOString() ?? null,
    confirmedAt: confirmedAt?.toISOString() ?? null,
    pendingHooks: pendingHookNames(facts),
  }
}

export function operationStatus({ key: name, state, since, attempt, nextTry }: Pending): OperationStatus {
  const time = (at: number): string => new Date(Date.now() + at - performance.now()).toISOString()
  return { name, state, since: time(since), attempt, nextTry: nextTry === undefined ? null : time(nextTry) }
}

/** Where the agent keeps its status; with many directories, status.lines beside it has the part of each. */
export function statusFileIn(stateDirectory: string): string {
  return join(stateDirectory, 'status.json')
}

/** What status.json holds. */
export interface StatusFile extends StatusDocument {
  readonly agent: AgentStatus
  /** The directories are in status.lines. */
  readonly pieces?: {
    /** Of the status.lines whose directories `confirmed` counts. */
    readonly id: string
    /** In the order of its directories: seconds from `confirmedAt` to `writtenAt`; null: never. */
    readonly confirmed: readonly (number | null)[]
  }
}

/** undefined: the text is no status. */
export function parseStatus(text: string): StatusFile | undefined {
  try {
    const document: unknown = JSON.parse(text)
    return isStatusDocument(document) ? document : undefined
  } catch {
    return undefined
  }
}

function isStatusDocument(value: unknown): value is StatusFile {
  if (!hasFields(value, ['agent', 'directories']) || !Array.isArray(value.directories)) return false
  if ('pieces' in value && !isPieces(value.pieces)) return false
  return hasFields(value.agent, ['version', 'writtenAt']) && value.directories.every(isDirectoryStatus)
}

function isPieces(value: unknown): boolean {
  return hasFields(value, ['id', 'confirmed']) && Array.isArray(value.confirmed)
}

export function isDirectoryStatus(value: unknown): value is DirectoryStatus {
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
