import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../errors.js'
import { retryDelay } from '../backoff.js'
import type { ProcessIdentity } from '../process-identity.js'
import type { Pending } from '../workqueue.js'
import type { Condition, DirectoryState, PublishedObject } from '../directory-state.js'

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
  /** Why this document is in the agent's memory alone: the disk of the stateDirectory does not answer. */
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

/** As people know them. A hook that the configuration has dropped has no name, and leaves the list at its turn. */
export function pendingHookNames({
  pendingHooks,
  configuration,
}: Pick<DirectoryState, 'pendingHooks' | 'configuration'>): string[] {
  return configuration.afterPublish.filter(({ key }) => pendingHooks.includes(key)).map(({ name }) => name)
}

export function directoryStatus(state: DirectoryState): DirectoryStatus {
  return {
    path: state.path,
    conditions: [state.published, state.fresh].filter((condition) => condition !== undefined),
    objects: state.objects,
    digest: state.digest ?? null,
    publishedAt: state.publishedAt?.toISOString() ?? null,
    confirmedAt: state.confirmedAt?.toISOString() ?? null,
    pendingHooks: pendingHookNames(state),
  }
}

export function operationStatus({ key: name, state, since, attempt, nextTry }: Pending): OperationStatus {
  const time = (at: number): string => new Date(Date.now() + at - performance.now()).toISOString()
  return { name, state, since: time(since), attempt, nextTry: nextTry === undefined ? null : time(nextTry) }
}

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
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
  const document = parseStatus(text)
  if (document !== undefined) return document
  throw new Error(
    `${statusFileIn(stateDirectory)} is not a status file of the agent: remove it; a running agent writes it again`,
  )
}

/** undefined: the text is no status. */
export function parseStatus(text: string): StatusDocument | undefined {
  try {
    const document: unknown = JSON.parse(text)
    return isStatusDocument(document) ? document : undefined
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

/** Milliseconds after a change: changes that come together are written together. */
const writeDelay = 150

/** Milliseconds: what changes nothing but dates is written this seldom, since each write costs the disk a flush. */
const heartbeat = 5 * 60_000

interface StatusWriterOptions {
  /** Writes the status as it is now, durably. */
  write(): Promise<void>
  /** Called with a write's error; the write is tried again, after a delay or at the next change. */
  failed(error: unknown): void
}

/** Decides when the status is written: soon after a change, never two at once, and every five minutes as a sign of life. */
export class StatusWriter {
  readonly #options: StatusWriterOptions
  #soon: NodeJS.Timeout | undefined
  /** Failed writes in a row, and the next try. */
  #failures = 0
  #again: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #changed = false
  #closed = false
  readonly #beat: NodeJS.Timeout

  constructor(options: StatusWriterOptions) {
    this.#options = options
    this.#beat = setInterval(() => this.changed(), heartbeat)
  }

  /** Something that a reader would want to know of has changed. */
  changed(): void {
    if (this.#closed) return
    this.#changed = true
    if (this.#writing) return
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      void this.#write()
    }, writeDelay)
  }

  /** Writes nothing any more. */
  abandon(): void {
    this.#closed = true
    clearInterval(this.#beat)
    clearTimeout(this.#soon)
    clearTimeout(this.#again)
  }

  /** Writes a last time; resolves when it is done. */
  async close(): Promise<void> {
    this.abandon()
    await this.#writing
    await this.#write()
  }

  async #write(): Promise<void> {
    this.#changed = false
    this.#beat.refresh()
    clearTimeout(this.#again)
    // In a later turn, once the writer counts as busy: its reads may report a change.
    this.#writing = Promise.resolve()
      .then(() => this.#options.write())
      .then(
        () => void (this.#failures = 0),
        (error: unknown) => {
          this.#failures += 1
          this.#options.failed(error)
        },
      )
    await this.#writing
    this.#writing = undefined
    if (this.#failures > 0 && !this.#closed) {
      this.#again = setTimeout(() => this.changed(), retryDelay(this.#failures))
    }
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- changed() may have been called while it was awaited.
    if (this.#changed) this.changed()
  }
}
