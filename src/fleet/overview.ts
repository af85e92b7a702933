/** How a fleet stands: sums, and each exception. It keeps a few words for each node, and no report. */
import type { ApiClient } from '../kubernetes/connection/client.js'
import { listed } from '../message-text.js'
import type { Log } from '../log.js'
import { hooksNotRun, longestQuiet, type FleetNode, type Obstacle } from './judge.js'
import type { Silence } from './collection.js'
import { NodeTable } from './node-table.js'
import { reportFacts, isLeftOut, type ReportFacts } from './read-report.js'
import { isSameObject, namesObject, type ObjectNamed, type ReportedDirectory, type ReportedState } from './types.js'

export interface OverviewOptions {
  /** A label selector of Nodes. */
  readonly nodes: string
  /** Only this directory of each node. */
  readonly directory?: string | undefined
  /** Only directories that have this object, or are to get it. */
  readonly object?: ObjectNamed | undefined
  readonly signal: AbortSignal
}

export interface Exception {
  readonly node: string
  /** Of one directory; absent: of the whole node. */
  readonly directory?: string
  readonly state:
    | Exclude<ReportedState, 'Current'>
    | Extract<Obstacle, 'NoReport' | 'OtherNode' | 'OtherBoot' | 'Silent' | 'NotConfigured' | 'Truncated'>
  readonly reason?: string
  readonly message?: string
  /** RFC 3339. */
  readonly since?: string
}

export interface Group {
  readonly value: string
  readonly nodes: number
}

interface Sums {
  readonly current: number
  readonly waiting: number
  readonly held: number
  readonly failed: number
}

export interface Overview {
  /** Now, by the API server's clock, RFC 3339. */
  readonly at: string
  readonly nodes: number
  readonly reports: number
  /** Of the directories that were asked for. */
  readonly directories: Sums
  /** The earliest end of a certificate in them, and its node. */
  readonly expires?: { readonly node: string; readonly at: string }
  readonly exceptions: readonly Exception[]
  /** The most frequent first. */
  readonly agentVersions: readonly Group[]
  readonly configurations: readonly Group[]
  /** With `object`: the versions that directories have. */
  readonly versions?: readonly Group[]
  /** While it is watched: the API server has not answered since then, so that all of this may be old. */
  readonly unanswered?: Silence
}

/** The part of one report that the overview keeps. */
interface NodeFacts extends Pick<ReportFacts, 'nodeUID' | 'bootID' | 'takenAt' | 'agentVersion' | 'configuration'> {
  readonly sums: Sums
  readonly expires: string | undefined
  readonly exceptions: readonly Exception[]
  readonly versions: readonly string[]
}

/** @throws ApiError, ConnectionError, the signal's reason */
export async function overviewOf(api: ApiClient, options: OverviewOptions): Promise<Overview> {
  const fleet = nodeTable(api, options, () => undefined)
  await fleet.read(options.signal)
  return summedUp(fleet, options)
}

/** Follows the fleet until the signal aborts; `changed`: the overview, once it is whole, may be another one. */
export async function watchFleet(
  api: ApiClient,
  { log, ...options }: OverviewOptions & { readonly log: Log },
  changed: (overview: () => Overview) => void,
): Promise<void> {
  const fleet = nodeTable(api, options, () => {
    if (fleet.isWhole) changed(() => summedUp(fleet, options))
  })
  await fleet.follow(options.signal, log)
}

function nodeTable(api: ApiClient, options: OverviewOptions, changed: () => void): NodeTable<NodeFacts> {
  return new NodeTable(api, {
    nodes: options.nodes,
    read: (report) => nodeFacts(reportFacts(report), options),
    changed,
  })
}

function summedUp(fleet: NodeTable<NodeFacts>, { object }: OverviewOptions): Overview {
  const now = fleet.now()
  const rows = fleet.rows()
  const known = rows.flatMap(({ node, report }) => (report === undefined ? [] : [{ node, facts: report }]))
  const exceptions = rows.flatMap(({ node, report }) => [
    ...nodeExceptions(node, report, now.getTime()),
    ...(report?.exceptions ?? []),
  ])
  const sum = (state: keyof Sums): number => known.reduce((all, { facts }) => all + facts.sums[state], 0)
  const [first] = known
    .flatMap(({ node, facts: { expires } }) => (expires === undefined ? [] : [{ node: node.name, at: expires }]))
    .sort((a, b) => byText(a.at, b.at))
  const { silence } = fleet
  return {
    at: now.toISOString(),
    nodes: rows.length,
    reports: known.length,
    directories: { current: sum('current'), waiting: sum('waiting'), held: sum('held'), failed: sum('failed') },
    ...(first && { expires: first }),
    exceptions: exceptions.sort(
      (a, b) => byText(a.node, b.node) || byText(a.directory ?? '', b.directory ?? '') || byText(a.state, b.state),
    ),
    agentVersions: groups(known.map(({ facts }) => facts.agentVersion)),
    configurations: groups(known.map(({ facts }) => facts.configuration)),
    ...(object && { versions: groups(known.flatMap(({ facts }) => facts.versions)) }),
    ...(silence && { unanswered: silence }),
  }
}

function nodeExceptions({ name, uid, bootID }: FleetNode, facts: NodeFacts | undefined, now: number): Exception[] {
  if (facts === undefined) return [{ node: name, state: 'NoReport' }]
  const since = facts.takenAt > 0 ? { since: new Date(facts.takenAt).toISOString() } : {}
  const states: Exception['state'][] = []
  if (facts.nodeUID !== uid) states.push('OtherNode')
  else if (facts.bootID !== bootID) states.push('OtherBoot')
  if (now - facts.takenAt > longestQuiet) states.push('Silent')
  return states.map((state) => ({ node: name, state, ...since }))
}

/** undefined: no agent has reported. */
function nodeFacts(facts: ReportFacts | undefined, options: OverviewOptions): NodeFacts | undefined {
  if (facts === undefined) return undefined
  const { name: node, nodeUID, bootID, takenAt, agentVersion, configuration, summary } = facts
  const { directory, object } = options
  const isAll = directory === undefined && object === undefined
  const listed = facts.directories.filter((each) => !isLeftOut(each))
  const chosen = listed.filter((each) => isChosen(each, options))
  const exceptions: Exception[] = chosen.flatMap((each) => {
    const { path: directory, state, since } = each
    return state === 'Current'
      ? []
      : [{ node, directory, state, ...whyOf(each), ...(since !== undefined && { since }) }]
  })
  // What the report had no room for may be what was asked for.
  const isCut =
    listed.length < facts.directories.length ||
    (object !== undefined && listed.some((each) => each.truncated === true && !chosen.includes(each)))
  if (isCut) exceptions.push({ node, state: 'Truncated' })
  else if (!isAll && chosen.length === 0) exceptions.push({ node, state: 'NotConfigured' })
  const count = (state: ReportedState): number => chosen.filter((each) => each.state === state).length
  const [ends] = chosen.flatMap(({ notAfter }) => notAfter ?? []).sort()
  return {
    nodeUID,
    bootID,
    takenAt,
    agentVersion,
    configuration,
    sums: isAll
      ? summary
      : { current: count('Current'), waiting: count('Waiting'), held: count('Held'), failed: count('Failed') },
    expires: isAll ? summary.expires : ends,
    exceptions,
    versions: chosen.flatMap(({ objects }) =>
      objects.flatMap((each) => (object !== undefined && isSameObject(each, object) ? [each.resourceVersion] : [])),
    ),
  }
}

/** Of a directory that waits, the condition Published says nothing: what the disk has is as it was published. */
function whyOf({
  state,
  reason,
  message,
  hooksPending = [],
  pending = [],
}: ReportedDirectory): Pick<Exception, 'reason' | 'message'> {
  if (state === 'Waiting' && pending.length > 0) {
    const versions = pending.map(
      ({ kind, namespace, name, resourceVersion }) =>
        `${kind} ${namespace}/${name}${resourceVersion === '' ? ', of which no version is known' : ` ${resourceVersion}`}`,
    )
    return { reason: 'Older', message: `not published yet: ${listed(versions)}` }
  }
  if (state === 'Waiting' && hooksPending.length > 0)
    return { reason: 'HooksPending', message: hooksNotRun(hooksPending) }
  return { reason, ...(message !== undefined && { message }) }
}

function isChosen(reported: ReportedDirectory, { directory, object }: OverviewOptions): boolean {
  if (directory !== undefined && reported.path !== directory) return false
  return object === undefined || namesObject(reported, object)
}

const byText = (a: string, b: string): number => Number(a > b) - Number(a < b)

function groups(values: readonly string[]): Group[] {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts]
    .map(([value, nodes]) => ({ value, nodes }))
    .sort((a, b) => b.nodes - a.nodes || byText(a.value, b.value))
}
