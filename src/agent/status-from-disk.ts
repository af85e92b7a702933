import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import { readPublication } from '../durable/index.js'
import type { Relocation } from '../durable/types.js'
import { silent } from '../log.js'
import { startDirectory } from './detect-drift.js'
import { DirectoryState } from './directory-state.js'
import { withOldPaths } from './moves.js'
import { movingCondition } from './moving.js'
import { noMetrics } from './report-metrics.js'
import { directoryStatus, type DirectoryStatus, type StatusDocument } from './status-file.js'

/**
 * The status where no agent runs: each directory of the configuration by its record, compared with the disk. `last`: what an agent
 * that has ended said at its end.
 */
export async function statusFromDisk(
  configuration: AgentConfiguration,
  last?: StatusDocument,
): Promise<StatusDocument> {
  const endedAt = last?.agent?.stoppedAt ?? last?.agent?.writtenAt
  const directories = []
  for (const { directory, relocation } of await unmoved(withOldPaths(configuration.directories))) {
    const state = new DirectoryState(directory)
    const before = last?.directories.find(({ path }) => path === directory.path)
    if (before) state.restore(before)
    await startDirectory(state, { log: silent, metrics: noMetrics })
    const now = new Date()
    const refused = refusedAtTheEnd(state, before)
    if (refused) state.setPublished(refused, now)
    else if (state.published?.status === 'True') {
      state.setPublished({ ...state.published, message: 'the disk holds the content that was published last' }, now)
    }
    if (directory.follows !== undefined && state.published?.status === 'True') {
      const moving = { kind: 'moving', to: directory.follows, ...(relocation && { state: relocation.state }) } as const
      state.setPublished(movingCondition(moving, { directory: state.path, intact: state.intact }), now)
    }
    const message =
      endedAt === undefined
        ? 'no agent has reported, so nobody has asked the source for newer objects'
        : `the agent has ended, and nobody has asked the source since ${endedAt}`
    state.setFresh({ status: 'Unknown', reason: 'NotConfirmed', message }, now)
    directories.push(directoryStatus(state))
  }
  return { agent: last?.agent ?? null, directories }
}

interface Unmoved {
  readonly directory: DirectoryConfiguration
  /** How far it has come: of an old path alone. */
  readonly relocation: Relocation | undefined
}

/** Without the old paths that are done with, by the records of the new ones. */
async function unmoved(directories: readonly DirectoryConfiguration[]): Promise<Unmoved[]> {
  const left: Unmoved[] = []
  for (const directory of directories) {
    const { follows, path } = directory
    const found = follows === undefined ? undefined : (await readPublication(follows))?.relocation
    const relocation = found?.from === path ? found : undefined
    if (relocation?.state !== 'done') left.push({ directory, relocation })
  }
  return left
}

/** Why the agent could not publish something newer, where what it left is still what the disk holds. */
function refusedAtTheEnd({ intact, digest }: DirectoryState, before: DirectoryStatus | undefined) {
  if (!intact || before?.digest !== digest) return undefined
  return before?.conditions.find(({ type, status }) => type === 'Published' && status !== 'True')
}
