import type { Exception, Group, Overview, OverviewOptions } from '../../fleet/overview.js'
import type { WaitResult } from '../../fleet/wait.js'
import { absolutePath } from '../../absolute-path.js'
import { Deadline } from '../../deadline.js'
import { linuxNodes } from '../../fleet/types.js'
import { toError } from '../../errors.js'
import type { ApiClient } from '../../kubernetes/connection/client.js'
import type { Log } from '../../log.js'
import { parseSelector, SelectorError } from '../../label-selector.js'
import { isLabel, isObjectName } from '../../kubernetes-names.js'
import { isComparable } from '../../objects/resource-version.js'
import type { ObjectKind } from '../../objects/types.js'
import { openApi } from '../content/open-api.js'
import { painter, wantsColour, type Paint } from '../output/colour.js'
import type { Io, Output } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { print } from '../output/print.js'
import { ProgressLine } from '../output/progress.js'
import { age, shortDigest, table, type Cell } from '../output/table.js'
import { interruptible } from '../signals.js'
import { Exit, exitCodes, UsageError } from '../words/exit-codes.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { reportFlags, apiFlags, headersFlag, timeoutFlag } from '../words/options.js'

interface NamedObject {
  readonly namespace: string
  readonly name: string
}

const fleetFlags = [
  ...apiFlags,
  flag('--nodes <selector>', 'only Nodes with these labels', { parse: parseNodes, fallback: linuxNodes }),
  flag('--secret <namespace/name>', 'the Secret in question', { parse: parseObject, conflicts: ['configmap'] }),
  flag('--configmap <namespace/name>', 'the ConfigMap in question', { parse: parseObject }),
]

const statusFlags = [
  ...fleetFlags,
  flag('--directory <path>', 'only this directory of each node', { parse: parseDirectory }),
  flag('-w, --watch', 'show it again whenever a node reports something new, until SIGINT'),
  headersFlag,
  ...reportFlags,
]

type FleetStatusFlags = FlagsOf<typeof statusFlags>

const fleetStatusCommand = command({
  name: 'status',
  summary: 'show how the directories of all nodes stand',
  description: `Shows sums over all nodes, then each directory that is not current and each node that does not report, then which versions
of the agent and of its configuration run. With --secret or --configmap, only directories that have that object or are to get it,
in which versions, and the nodes that have no such directory.`,
  flags: statusFlags,
  examples: `  holdfast fleet status
  holdfast fleet status --secret kube-system/ca-bundle --nodes node-role.kubernetes.io/worker
  holdfast fleet status --watch`,
  exitCodes: `0 shown, 1 the cluster did not answer, 2 wrong usage, 130 --watch ended by SIGINT.`,
  run: ({ io, options }) => interruptible(io, (signal) => runStatus(io, options, signal)),
})

const waitFlags = [
  ...fleetFlags,
  flag('--resource-version <version>', "the version to wait for (default: the object's at the start)", {
    parse: parseVersion,
  }),
  timeoutFlag('how long to wait for all nodes together', 1_800_000, '30m'),
  flag('--reported-only', 'do not wait for nodes that have no report'),
  flag('--ignore-silent', 'believe reports that are older than an hour'),
  ...reportFlags,
]

type WaitFlags = FlagsOf<typeof waitFlags>

const waitCommand = command({
  name: 'wait',
  summary: 'wait until each node has an object on its disk',
  description: `Waits until each selected node has this version of the object, or a newer one, on its disk: published, durable on a file
system where that is proven, with its hooks run. Exit code 0 is a proof, by a report of each node since its last boot: a node
without a report, or with one that is too old, is waited for.`,
  flags: waitFlags,
  examples: `  holdfast fleet wait --secret kube-system/ca-bundle && kubectl delete secret -n kube-system old-signer
  holdfast fleet wait --configmap kube-system/ca --nodes pool=edge --timeout 2h`,
  exitCodes: `0 each node has it, 1 not in time, no node is selected, or the object was deleted or replaced, 2 wrong usage.`,
  run: ({ io, options }) => interruptible(io, (signal) => runWait(io, options, signal)),
})

/** `holdfast fleet status` and `holdfast fleet wait`. */
export const fleetCommand = command({
  name: 'fleet',
  summary: 'show what all nodes have, and wait until they have it',
  description: `Asks the cluster what its nodes have on their disks: agents with report: true in their configuration report it, one
NodePublication (npub) for each node. Any machine with a kubeconfig will do.`,
  commands: [fleetStatusCommand, waitCommand],
  examples: `  holdfast fleet status
  holdfast fleet wait --secret kube-system/ca-bundle --timeout 30m`,
  exitCodes: `0 shown, or each node has the object; 1 not; 2 wrong usage.`,
})

function parseNodes(text: string): string {
  try {
    parseSelector(text)
    return text
  } catch (error) {
    if (error instanceof SelectorError) throw new UsageError(`--nodes ${text}: ${error.message}: ${error.suggestion}`)
    throw error
  }
}

/** As reports name it. */
export function parseDirectory(text: string): string {
  if (!text.startsWith('/')) throw new UsageError(`--directory ${text} is no absolute path: reports name no other ones`)
  return absolutePath(text)
}

function parseVersion(text: string): string {
  if (isComparable(text)) return text
  throw new UsageError(`--resource-version ${text} is no resourceVersion, as 12345: others have no order`)
}

function parseObject(text: string): NamedObject {
  const [namespace = '', name = '', ...more] = text.split('/')
  if (more.length > 0 || !isLabel(namespace) || !isObjectName(name)) {
    throw new UsageError(`${text} is not NAMESPACE/NAME, as kube-system/ca-bundle`)
  }
  return { namespace, name }
}

function objectOf({
  secret,
  configmap,
}: FlagsOf<typeof fleetFlags>): (NamedObject & { readonly kind: ObjectKind }) | undefined {
  if (secret) return { kind: 'Secret', ...secret }
  return configmap && { kind: 'ConfigMap', ...configmap }
}

async function runStatus(io: Io, options: FleetStatusFlags, signal: AbortSignal): Promise<void> {
  const log = createLogger(io, options)
  const { overviewOf } = await import('../../fleet/overview.js')
  const { api } = await openApi(options, io.env, log)
  const { nodes, directory } = options
  const asked = { nodes, directory, object: objectOf(options), signal }
  try {
    if (options.watch === true) await watchFleetStatus(io, options, api, { ...asked, log })
    else await printOverview(io, io.stdout, options, await overviewOf(api, asked))
  } finally {
    await api.close()
  }
}

async function printOverview(
  { stdout, env }: Io,
  to: Output,
  { output, headers }: FleetStatusFlags,
  overview: Overview,
) {
  const paint = painter(wantsColour(stdout, env))
  await print(to, output, overview, (wide) => overviewText(overview, new Date(overview.at), paint, { wide, headers }))
}

/** Milliseconds: many nodes change together. */
const together = 1_000

async function watchFleetStatus(
  io: Io,
  options: FleetStatusFlags,
  api: ApiClient,
  asked: OverviewOptions & { readonly log: Log },
): Promise<void> {
  const { watchFleet } = await import('../../fleet/overview.js')
  const { Display, showChanges } = await import('../output/watch.js')
  const display = new Display(io.stdout, options.output)
  const ending = new AbortController()
  let latest: (() => Overview) | undefined
  const follow = (wake: () => void) => {
    let waking: NodeJS.Timeout | undefined
    let problem: Promise<never> | undefined
    const signal = AbortSignal.any([asked.signal, ending.signal])
    watchFleet(api, { ...asked, signal }, (overview) => {
      latest = overview
      waking ??= setTimeout(wake, together)
    }).catch((error: unknown) => {
      problem = Promise.reject(toError(error))
      problem.catch(() => undefined)
      wake()
    })
    return {
      arm: async () => {
        clearTimeout(waking)
        waking = undefined
        await problem
      },
      close: () => {
        clearTimeout(waking)
        ending.abort()
      },
    }
  }
  await showChanges(follow, asked.signal, async () => {
    const overview = latest?.()
    if (overview === undefined) return 'shown'
    // The time alone is no change.
    const { at: _, ...found } = overview
    return display.show(found, (to) => printOverview(io, to, options, overview))
  })
}

async function runWait(io: Io, options: WaitFlags, interrupted: AbortSignal): Promise<void> {
  const object = objectOf(options)
  if (object === undefined)
    throw new UsageError('which object? add --secret NAMESPACE/NAME or --configmap NAMESPACE/NAME')
  const log = createLogger(io, options)
  const { waitForObject } = await import('../../fleet/wait.js')
  const { api } = await openApi(options, io.env, log)
  const began = Date.now()
  const deadline = new Deadline(options.timeout, interrupted)
  let counts = { done: 0, nodes: 0 }
  try {
    const progress = new ProgressLine(io.stderr)
    const { nodes, resourceVersion, reportedOnly = false, ignoreSilent = false } = options

    const result = await progress.during(
      () => `${counts.done} of ${counts.nodes} nodes have it, after ${age(new Date(began), new Date())}`,
      () =>
        waitForObject(api, {
          ...object,
          nodes,
          resourceVersion,
          reportedOnly,
          ignoreSilent,
          signal: deadline.signal,
          log,
          progress: (now) => (counts = now),
        }),
    )
    interrupted.throwIfAborted()
    await print(io.stdout, options.output, { ...result, done: result.ended === 'done' }, () =>
      waitText(result, options),
    )
    if (result.ended !== 'done') throw new Exit(exitCodes.failed)
  } finally {
    deadline.dispose()
    await api.close()
  }
}

/** The answer for people: one sentence, and the nodes that are missing. */
export function waitText({ wanted, ended, isAnswered, nodes }: WaitResult, options: WaitFlags): string {
  const object = objectOf(options)
  const name = `${object?.kind} ${object?.namespace}/${object?.name}`
  const which = [
    `nodes of ${options.nodes}`,
    ...(options.reportedOnly === true ? ['without those that have no report'] : []),
    ...(options.ignoreSilent === true ? ['old reports included'] : []),
  ].join(', ')
  if (ended === 'gone') {
    return wanted === undefined
      ? `${name} does not exist\n`
      : `${name} was deleted or replaced: its version ${wanted.resourceVersion} is no more\n`
  }
  if (ended === 'no-nodes') return `no node to wait for (${which})\n`
  const version = wanted === undefined ? name : `${name} in version ${wanted.resourceVersion} or newer`
  if (ended === 'done') return `all ${nodes.length} nodes have ${version}: durable, with hooks run (${which})\n`
  if (!isAnswered) return `${name}: the API server has not answered for the object, all nodes and all reports in time\n`
  const left = nodes.filter(({ obstacle }) => obstacle !== undefined)
  const rows = left.map(({ node, obstacle = '', message }) => [node, obstacle, message])
  const head = `${nodes.length - left.length} of ${nodes.length} nodes have ${version} (${which})`
  if (left.length === 0) return `${head} by their reports, but the API server has not confirmed it in time\n`
  return `${head}; missing:\n${table([['NODE', 'REASON', 'MESSAGE'], ...rows])}`
}

/** Sums first, then what stands out: nodes with their reasons, and versions of agent and configuration. */
export function overviewText(
  overview: Overview,
  now: Date,
  paint: Paint,
  { wide = false, headers = true } = {},
): string {
  const { nodes, reports, directories, expires, exceptions, versions, unanswered } = overview
  const { current, waiting, held, failed } = directories
  const all = current + waiting + held + failed
  const old = (['OtherNode', 'OtherBoot', 'Silent'] as const).flatMap((state) => {
    const count = exceptions.filter((each) => each.state === state).length
    return count > 0 ? [`${count} ${state}`] : []
  })
  const lines = [
    ...(unanswered
      ? [
          `the API server has not answered for ${age(new Date(unanswered.since), now)} (${unanswered.message}); before that:`,
        ]
      : []),
    `${nodes} nodes, ${reports} report${old.length > 0 ? ` (${old.join(', ')})` : ''}`,
    `${all} directories: ${current} current, ${waiting} waiting, ${held} held, ${failed} failed`,
    ...(expires ? [`the first certificate ends ${expires.at}, on ${expires.node}`] : []),
  ]
  const shown = exceptions.map((each) => exceptionRow(each, now, paint, wide))
  const columns = ['NODE', 'DIRECTORY', 'STATE', 'REASON', 'SINCE', ...(wide ? ['MESSAGE'] : [])]
  const configurations = overview.configurations.map((each) => ({ ...each, value: shortDigest(each.value) }))
  const tables = [
    [columns, ...shown],
    groupRows('VERSION', versions ?? [], 'DIRECTORIES'),
    groupRows('AGENT', overview.agentVersions),
    groupRows('CONFIGURATION', configurations),
  ].filter((rows) => rows.length > 1)
  const texts = tables.map((rows) => `\n${table(headers ? rows : rows.slice(1))}`)
  return [...lines.map((line) => `${line}\n`), ...texts].join('')
}

function exceptionRow(
  { node, directory = '-', state, reason = '-', since, message = '-' }: Exception,
  now: Date,
  paint: Paint,
  wide: boolean,
): (string | Cell)[] {
  const colour = state === 'Failed' ? 'red' : 'yellow'
  const ago = since === undefined ? '-' : age(new Date(since), now)
  return [
    node,
    directory,
    { text: state, paint: (text) => paint(colour, text) },
    reason,
    ago,
    ...(wide ? [message] : []),
  ]
}

function groupRows(title: string, groups: readonly Group[], counted = 'NODES'): string[][] {
  return [[title, counted], ...groups.map(({ value, nodes }) => [value, String(nodes)])]
}
