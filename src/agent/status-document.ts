import type { Condition } from './conditions.js'
import type { DirectoryState, PublishedObject } from './directory-state.js'

/** What `holdfast status -o json` prints, and what the agent keeps in STATE/status.json. Times are RFC 3339. */
export interface StatusDocument {
  /** null: no agent has reported; the directories are told by the configuration and the disk alone. */
  readonly agent: AgentStatus | null
  readonly directories: readonly DirectoryStatus[]
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
  /** Why the configuration file, read again, was not put in force. */
  readonly configurationInvalid?: string
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

/** As people know them. One that is not configured any more has no name, and is dropped when its turn comes. */
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
