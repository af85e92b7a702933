/** The report of this node to its cluster, with `report: true`: what the agent knows, in the form that src/fleet sends. */
import { readFile } from 'node:fs/promises'
import { objectName } from '../../message-text.js'
import { expand, referencesOf } from '../../config/references.js'
import { messageOf } from '../../errors.js'
import type { NodeReporter } from '../../fleet/reporter.js'
import type { NodeSnapshot, SnapshotDirectory } from '../../fleet/report-status.js'
import type { ReportedState } from '../../fleet/types.js'
import type { Log } from '../../log.js'
import { hasObject } from '../../objects/same-state.js'
import type { Source } from '../../objects/types.js'
import { withoutPaths, type PublishedObject } from '../conditions.js'
import type { DirectoryFacts, DirectoryState } from '../directory-state.js'
import { pendingHookNames } from './status-file.js'

/** Reports to the cluster. Calls return at once, and never throw. */
export type NodeReport = Pick<NodeReporter, 'changed' | 'retryRefused' | 'close'>

/** Without `report: true`, and for sources without a cluster. */
export const noReport: NodeReport = { changed() {}, retryRefused() {}, close: () => Promise.resolve() }

interface NodeReportOptions {
  readonly log: Log
  /** This node's name in the cluster; the empty string where it is unknown. */
  readonly node: string
  readonly identity: () => string | undefined
  readonly version: string
  /** Digest of the configuration that is in force. */
  readonly configuration: () => string
  readonly states: Iterable<DirectoryState>
}

/** Reports over the connection of the source. The code is loaded only where the configuration asks for it. */
export async function openNodeReport(source: Source, options: NodeReportOptions): Promise<NodeReport> {
  const { api } = source
  const { log, node } = options
  const agentID = options.identity()
  if (api === undefined) return noReport
  if (node === '' || agentID === undefined) {
    const problem =
      node === ''
        ? "this node's name is not known: set --node-name or NODE_NAME (fieldRef: spec.nodeName in a pod)"
        : 'this agent has no identity, since its stateDirectory could not keep one'
    log.warn({ reason: 'ReportRefused' }, `this node does not report: ${problem}; everything else works`)
    return noReport
  }
  try {
    // eslint-disable-next-line no-restricted-syntax -- the start comes here, or a reload by hand
    const { NodeReporter } = await import('../../fleet/reporter.js')
    // Of the kernel, in each container: kubelet reads the same file (cadvisor, machine.GetMachineInfo).
    const bootID = (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim()
    const startedAt = performance.now()
    const snapshot = (): NodeSnapshot | undefined =>
      reportSnapshot(source, options, performance.now() - startedAt > patience)
    return new NodeReporter(api, { log, node, agentID, bootID, snapshot })
  } catch (error) {
    log.warn({ reason: 'ReportRefused' }, `this node does not report: ${messageOf(error)}; everything else works`)
    return noReport
  }
}

/** Milliseconds after which a directory that still waits for its disk is no reason to report nothing of the others. */
const patience = 60_000

/** undefined: a directory has not been compared with the disk and the source yet, which is worth a wait unless it `isLate`. @internal */
export function reportSnapshot(
  source: Pick<Source, 'latest'>,
  { version, configuration, states }: Pick<NodeReportOptions, 'version' | 'configuration' | 'states'>,
  isLate: boolean,
): NodeSnapshot | undefined {
  const directories: SnapshotDirectory[] = []
  for (const state of states) {
    // An old path goes, and gets its content from the new one.
    if (state.configuration.follows !== undefined) continue
    const { unread, published } = state.facts
    if (!isLate && (unread !== undefined || published === undefined)) return undefined
    directories.push(reportedDirectoryOf(state.facts, (reference) => source.latest(reference)))
  }
  return { agentVersion: version, configuration: configuration(), directories }
}

function reportedDirectoryOf(facts: DirectoryFacts, latest: Source['latest']): SnapshotDirectory {
  const { configuration, published, record, passed } = facts
  const { certificates, unproven } = passed
  const pending = unpublished(facts, latest)
  const hooksPending = pendingHookNames(facts)
  const ends = certificates.map(({ notAfter }) => notAfter.getTime())
  const reported = reportedStateOf(facts, pending.length + hooksPending.length > 0)
  return {
    path: configuration.path,
    state: reported,
    reason: published?.reason ?? 'NotConfirmed',
    ...(reported !== 'Current' && { message: published?.message ?? '' }),
    sequence: record?.sequence ?? 0,
    ...(record && { publishedAt: record.publishedAt.toISOString() }),
    ...(ends.length > 0 && { notAfter: new Date(Math.min(...ends)).toISOString() }),
    ...(unproven !== false && { unproven: true }),
    ...(hooksPending.length > 0 && { hooksPending }),
    objects: facts.objects.map(withoutPaths),
    ...(pending.length > 0 && { pending }),
    confirmed: reported === 'Held' || isConfirmed(facts, latest),
  }
}

function reportedStateOf({ published, intact }: DirectoryFacts, isBehind: boolean): ReportedState {
  if (published?.reason === 'Held' || published?.reason === 'RolledBack') return 'Held'
  if (published?.status !== 'True' || !intact) return 'Failed'
  return isBehind ? 'Waiting' : 'Current'
}

/** The source has reported each object since the start: an older version than before is then the newest one. */
function isConfirmed({ configuration }: DirectoryFacts, latest: Source['latest']): boolean {
  return referencesOf(expand(configuration, latest)).every((reference) => {
    const observed = latest(reference)
    return observed !== undefined && observed.state !== 'unknown'
  })
}

/** Versions of the source that the disk does not have. An object that is neither published nor readable now has an empty version. */
function unpublished(facts: DirectoryFacts, latest: Source['latest']): PublishedObject[] {
  const known = new Map(facts.objects.map((object) => [objectName(object), object]))
  return referencesOf(expand(facts.configuration, latest)).flatMap((reference) => {
    const observed = latest(reference)
    const { kind, namespace, name } = reference
    const published = known.get(objectName(reference))
    if (observed === undefined || observed.state === 'unknown') {
      return published === undefined ? [{ kind, namespace, name, uid: '', resourceVersion: '' }] : []
    }
    if (!hasObject(observed)) return []
    const { uid, resourceVersion } = observed.object
    const isPublished = published?.uid === uid && published.resourceVersion === resourceVersion
    return isPublished ? [] : [{ kind, namespace, name, uid, resourceVersion }]
  })
}
