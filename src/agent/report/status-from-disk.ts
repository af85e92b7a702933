import type { AgentConfiguration, DirectoryConfiguration } from '../../config/types.js'
import { publishedCertificateDates, dateFindings } from '../../directories/validate.js'
import { readPublication, describeOrders } from '../../durable/index.js'
import type { Relocation } from '../../durable/types.js'
import { silent } from '../../log.js'
import { startDirectory } from '../detect-drift.js'
import { DirectoryState, type DirectoryFacts } from '../directory-state.js'
import type { Condition, ConditionState } from '../conditions.js'
import { withOldPaths } from '../leaving/moves.js'
import { movingCondition } from '../leaving/moving.js'
import { noMetrics } from './report-metrics.js'
import { newerPass, readLastPass } from './last-pass.js'
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
  const pass = newerPass(await readLastPass(configuration.stateDirectory), endedAt)
  const directories = []
  for (const { directory, relocation } of await unmoved(withOldPaths(configuration.directories))) {
    const state = new DirectoryState(directory)
    const isOfIt = ({ path }: DirectoryStatus): boolean => path === directory.path
    const before = pass?.directories.find(isOfIt) ?? last?.directories.find(isOfIt)
    if (before) state.happened({ kind: 'restored', status: before })
    await startDirectory(state, { log: silent, metrics: noMetrics })
    const now = new Date()
    const judge = (type: Condition['type'], condition: ConditionState) =>
      state.happened({ kind: 'judged', type, condition }, now)
    const { intact, published } = state.facts
    const condition =
      refusedAtTheEnd(state.facts, before) ?? (published && (await recordedCondition(state.facts, published, now)))
    if (condition) judge('Published', condition)
    if (directory.follows !== undefined && condition?.status === 'True') {
      const moving = { kind: 'moving', to: directory.follows, ...(relocation && { state: relocation.state }) } as const
      judge('Published', movingCondition(moving, { directory: state.path, intact }))
    }
    judge('Fresh', { status: 'Unknown', reason: 'NotConfirmed', message: notConfirmed(pass?.at, endedAt) })
    directories.push(directoryStatus(state))
  }
  return { agent: last?.agent ?? null, directories }
}

function notConfirmed(passAt: string | undefined, endedAt: string | undefined): string {
  if (passAt !== undefined) return `no agent runs, and nobody has asked the source since ${passAt}`
  return endedAt === undefined
    ? 'no agent has reported, so nobody has asked the source for newer objects'
    : `the agent has ended, and nobody has asked the source since ${endedAt}`
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
    // The new path's own line tells of a record that cannot be read.
    const said = follows === undefined ? undefined : await readPublication(follows).catch(() => undefined)
    const found = said?.relocation
    const relocation = found?.from === path ? found : undefined
    if (relocation?.state !== 'done') left.push({ directory, relocation })
  }
  return left
}

/**
 * What the record and the published files tell without a source: a hold or a pin of an operator, and else a certificate whose time is
 * over. `compared`: what the comparison with the disk came to.
 */
async function recordedCondition(
  { configuration: { path }, record }: DirectoryFacts,
  compared: ConditionState,
  now: Date,
): Promise<ConditionState> {
  const { hold, pin } = record ?? {}
  const orders = describeOrders(path, { hold, pin })
  if (compared.status !== 'True') return { ...compared, message: [compared.message, ...orders].join('; ') }
  if (orders.length > 0) return { status: 'True', reason: hold ? 'Held' : 'RolledBack', message: orders.join('; ') }
  // A file that cannot be read is a difference, which the comparison has told already.
  const [expired] = dateFindings(await publishedCertificateDates(path).catch(() => []), now)
  if (expired) return { status: 'True', reason: expired.reason, message: expired.message }
  return { ...compared, message: 'the disk holds the content that was published last' }
}

/** Why the last pass could not publish something newer, where the disk still holds what that pass left, or nothing was published yet. */
function refusedAtTheEnd({ intact, record, drift, uncompared }: DirectoryFacts, before: DirectoryStatus | undefined) {
  if (uncompared !== undefined || drift !== undefined || (record && !intact)) return undefined
  if ((before?.digest ?? null) !== (record?.digest ?? null)) return undefined
  return before?.conditions.find(({ type, status }) => type === 'Published' && status !== 'True')
}
