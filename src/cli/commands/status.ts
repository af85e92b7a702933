import type { Condition } from '../../agent/conditions.js'
import type { DirectoryStatus, StatusDocument } from '../../agent/report/status-file.js'
import type { Consumer } from '../../check/consumers.js'
import type { RolloutStatus } from '../../static-pods/rollout/rollout-status.js'
import { escaped } from '../../message-text.js'
import type { AgentConfiguration } from '../../config/types.js'
import { toError } from '../../errors.js'
import { painter, wantsColour, type Paint } from '../output/colour.js'
import { loadForLooking } from '../content/load.js'
import { selected } from '../content/select.js'
import type { Io, Output } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { findOrphans, orphansText, type Orphan } from '../output/orphans.js'
import { print } from '../output/print.js'
import { interruptible } from '../signals.js'
import { wrapLines } from '../output/help-text.js'
import { age, objectText, shortDigest, shortPath, table, type Cell } from '../output/table.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { pathReportFlags, headersFlag, configInputFlag } from '../words/options.js'

/** A running agent writes every five minutes at least; after twice that, in milliseconds, something is wrong. */
const longestSilence = 10 * 60_000

const flags = [
  flag('--orphans', 'with what is kept for paths that are not configured'),
  configInputFlag,
  headersFlag,
  flag('-w, --watch', 'show it again whenever the agent reports something new, until SIGINT'),
  ...pathReportFlags,
]

type StatusFlags = FlagsOf<typeof flags> & {
  /** The line itself names the configuration. */
  readonly named?: boolean
}

/** `holdfast status [--config FILE]` */
export const statusCommand = command({
  name: 'status',
  summary: "show each directory's state as a table",
  description: `Shows what the agent last reported of each directory: whether the newest objects are published, and whether the source has
recently confirmed that nothing is newer, and which processes still use old content. It says when the configuration has changed
since the agent read it. Where no agent runs, or that of another configuration, --config makes it compare the disk with the records
of what was published in the configured directories: it tells a hold, a rollback and an expired certificate, too. It asks no source.

Without --config, it shows the status in /var/lib/holdfast.

With a PATH, it shows this directory alone. With --orphans, it also lists what holdfast keeps for paths that are no directories of the configuration: beside those directories,
and in or beside each PATH.`,
  words: [['[path...]', 'only these directories; with --orphans: where to look, too']],
  flags,
  examples: `  holdfast status
  holdfast status --config /etc/holdfast.yaml -o json
  holdfast status --orphans /etc/kubernetes
  holdfast status --watch
  holdfast status /etc/kubernetes/certs --no-headers`,
  exitCodes: `0 shown, 1 there is no status, 2 wrong usage or configuration, 130 --watch ended by SIGINT.`,
  run: async ({ io, options: given, named }, paths) => {
    const options = { ...given, named: named.has('config') }
    if (options.watch === true) await interruptible(io, (signal) => watchStatus(io, paths, options, signal))
    else await printStatus(io, io.stdout, options, await shownFor(io, options, paths))
  },
})

async function shownFor(io: Io, options: StatusFlags, paths: readonly string[]): Promise<ShownStatus> {
  const status = await statusFor(io, options)
  if (options.orphans !== true) {
    const file = status.agent?.configuration?.file ?? 'the configuration'
    const directories = selected({ file, directories: status.directories }, paths)
    const consumers = status.consumers.filter((one) => directories.some(({ path }) => path === one.path))
    return { ...status, directories, consumers }
  }
  const configured = status.directories.map(({ path }) => path)
  return { ...status, orphans: await findOrphans(configured, paths) }
}

async function printStatus({ stdout, env }: Io, to: Output, { output, headers }: StatusFlags, shown: ShownStatus) {
  const paint = painter(wantsColour(stdout, env))
  await print(to, output, shown, (wide) => statusText(shown, new Date(), paint, { wide, headers }, stdout.columns))
}

async function watchStatus(io: Io, paths: readonly string[], options: StatusFlags, signal: AbortSignal): Promise<void> {
  const { stateDirectory } = await statusFor(io, options)
  const { Display, showChanges } = await import('../output/watch.js')
  const { DirectoryWatch } = await import('../../directory-watch.js')
  const display = new Display(io.stdout, options.output)
  const log = createLogger(io, options)
  await showChanges(
    (wake) => new DirectoryWatch(stateDirectory, wake, log),
    signal,
    async () => {
      const shown = await shownFor(io, options, paths)
      return display.show(shown, (to) => printStatus(io, to, options, shown))
    },
  )
}

/** The document of `status -o json`. */
interface ShownStatus extends StatusDocument {
  readonly stateDirectory: string
  /** An agent that keeps its state there runs now. */
  readonly running: boolean
  /** Its configuration file has changed since that agent read it. */
  readonly configurationChanged: boolean
  /** The configuration file of the agent whose state is there, where that differs from the file that the user named. */
  readonly otherConfiguration: string | null
  readonly consumers: readonly Consumer[]
  /** Of static pods, those that are not over. */
  readonly rollouts: readonly RolloutStatus[]
  /** With --orphans. */
  readonly orphans?: readonly Orphan[]
}

/** A configuration that the line names must be right. A running agent may refuse another one, and its status tells that. */
async function configurationFor(
  { stdin }: Io,
  options: StatusFlags,
): Promise<{ configuration?: AgentConfiguration; problem?: Error }> {
  if (options.config === undefined) return {}
  const once = options.config === '-' && options.watch !== true
  try {
    return { configuration: await loadForLooking(options, once ? stdin : undefined) }
  } catch (problem) {
    if (options.named === true) throw problem
    return { problem: toError(problem) }
  }
}

async function statusFor(io: Io, options: StatusFlags): Promise<ShownStatus> {
  const [{ readStatusFile }, { statusFileIn }, { problemOfState }, { isAgentRunning }] = await Promise.all([
    import('../../agent/report/read-status.js'),
    import('../../agent/report/status-file.js'),
    import('../../agent/report/hanging-state.js'),
    import('../../agent/state-lock.js'),
  ])
  const { configuration, problem } = await configurationFor(io, options)
  const stateDirectory =
    configuration?.stateDirectory ?? (await import('../../config/document.js')).defaultStateDirectory
  const before = await readStatusFile(stateDirectory)
  const running = before?.agent ? await isAgentRunning(stateDirectory, before.agent) : false
  // A frozen file system can still be read.
  const stateProblem = running ? await problemOfState(stateDirectory) : undefined
  const found =
    before?.agent && stateProblem !== undefined ? { ...before, agent: { ...before.agent, stateProblem } } : before
  const otherConfiguration = otherThan(configuration, found)
  const own = otherConfiguration === null ? found : undefined
  const document =
    configuration !== undefined && (own === undefined || !running)
      ? await (await import('../../agent/report/status-from-disk.js')).statusFromDisk(configuration, own)
      : own
  if (document === undefined) {
    if (problem !== undefined) throw problem
    throw new Error(
      `no status in ${statusFileIn(stateDirectory)}: no agent has run with this stateDirectory; name the configuration (--config) to compare the disk without an agent`,
    )
  }
  const configurationChanged = running && own !== undefined && (await hasChanged(own, configuration))
  const consumers = await usersOfDirectories(document)
  const { rolloutsOf } = await import('../../check/rollouts.js')
  const rollouts = await rolloutsOf(configuration?.directories ?? [])
  const operations = running ? (document.operations ?? []) : []
  const looked = { configurationChanged, otherConfiguration, consumers, rollouts }
  return { ...document, operations, stateDirectory, running, ...looked }
}

/** A file that was moved, or is mounted elsewhere, is still the same configuration: by its text. */
function otherThan(asked: AgentConfiguration | undefined, found: StatusDocument | undefined): string | null {
  const known = found?.agent?.configuration
  if (asked === undefined || known === undefined) return null
  return known.file === asked.file || known.digest === asked.digest ? null : known.file
}

async function hasChanged({ agent }: StatusDocument, asked: AgentConfiguration | undefined): Promise<boolean> {
  const known = agent?.configuration
  if (known === undefined) return false
  const now = asked ?? (await loadForLooking({ config: known.file }).catch(() => undefined))
  return now !== undefined && now.digest !== known.digest
}

/** The processes that use the directories. Looks at procfs alone: a disk that hangs must not keep the status from being shown. */
async function usersOfDirectories({ directories }: StatusDocument): Promise<readonly Consumer[]> {
  const { findConsumers } = await import('../../check/consumers.js')
  const paths = directories.map(({ path }) => path)
  return (await findConsumers(paths, { followLinks: false })).consumers
}

/** The table, and the notes below it. */
export function statusText(
  shown: ShownStatus,
  now: Date,
  paint: Paint,
  { wide = false, headers = true } = {},
  columns?: number,
): string {
  const { directories } = shown
  const rows = [
    ['PATH', 'PUBLISHED', 'FRESH', 'REASON', 'AGE', 'CONFIRMED', 'DIGEST', ...(wide ? ['OBJECTS'] : [])],
    ...directories.map((directory) => directoryRow(directory, now, paint, wide)),
  ]
  const notes = directories.flatMap((directory) => directoryNotes(directory, shown, now))
  const fits = wide || columns === undefined ? (lines: string) => lines : (lines: string) => wrapLines(lines, columns)
  if (!wide && columns !== undefined) narrow(rows, columns)
  const orphans = shown.orphans ? ['\n', orphansText(shown.orphans, now)] : []
  return [
    table(headers ? rows : rows.slice(1)),
    ...(notes.length > 0 ? ['\n', ...notes.map(fits)] : []),
    '\n',
    fits(agentLine(shown, now, paint)),
    ...shown.rollouts.map(({ message, advice = '' }) => fits(`${paint('yellow', escaped(message))}\n-> ${advice}\n`)),
    ...orphans,
  ].join('')
}

function directoryRow(directory: DirectoryStatus, now: Date, paint: Paint, wide: boolean): (string | Cell)[] {
  return [
    directory.path,
    conditionCell(directory, 'Published', paint),
    conditionCell(directory, 'Fresh', paint),
    conditionToTell(directory)?.reason ?? conditionOf(directory, 'Published')?.reason ?? '-',
    directory.publishedAt ? age(new Date(directory.publishedAt), now) : '-',
    directory.confirmedAt ? age(new Date(directory.confirmedAt), now) : 'never',
    directory.digest === null ? '-' : wide ? directory.digest : shortDigest(directory.digest),
    ...(wide ? [directory.objects.map(objectText).join(', ') || '-'] : []),
  ]
}

/** What the row has no room for: the condition's message, what is waited for, hooks that have not run, users of old content. */
function directoryNotes(directory: DirectoryStatus, shown: ShownStatus, now: Date): string[] {
  const { path } = directory
  const condition = conditionToTell(directory)
  const wait = waitOf(shown, `publish ${path}`, now, 'debounce or minInterval lets the agent publish what has changed')
  const hookWait = waitOf(shown, `afterPublish ${path}`, now, 'hookInterval lets it run')
  const ending = hookWait === undefined ? '' : `: ${hookWait}`
  // During a move, each process that uses the old path keeps it from going, not only users of old content.
  const moves = condition?.reason === 'Relocating'
  const old = shown.consumers.filter((consumer) => (consumer.retired || moves) && consumer.path === path)
  return [
    ...(condition ? [condition.message] : []),
    ...(wait === undefined ? [] : [wait]),
    ...directory.pendingHooks.map((hook) => `the hook "${hook}" has not run yet${ending}`),
    ...old.map(({ description }) => description),
  ].map((note) => `${path}: ${note}\n`)
}

/** A path shows so many characters at least. */
const shortestPath = 24

/** Has the table fit the terminal: the digests go, which -o wide shows, and then the middle of long paths. */
function narrow(rows: (string | Cell)[][], columns: number): void {
  const widthOf = () =>
    Math.max(
      ...table(rows.map((row) => row.map(cellText)))
        .split('\n')
        .map((line) => line.length),
    )
  if (widthOf() <= columns) return
  for (const row of rows) row.length = 6
  const [excess, longest] = [widthOf() - columns, Math.max(...rows.map(([path]) => cellText(path).length))]
  const width = Math.max(shortestPath, longest - Math.max(0, excess))
  for (const row of rows) row[0] = shortPath(cellText(row[0]), width)
}

function cellText(cell: string | Cell = ''): string {
  return typeof cell === 'string' ? cell : cell.text
}

/** Until when an operation of the agent waits, and for what; undefined where it does not. */
function waitOf({ operations = [] }: ShownStatus, name: string, now: Date, paced: string): string | undefined {
  const { attempt = 1, nextTry = null } = operations.find((operation) => operation.name === name) ?? {}
  if (nextTry === null || new Date(nextTry) <= now) return undefined
  return `${attempt > 1 ? 'the agent tries again' : paced} in ${age(now, new Date(nextTry))}`
}

function agentLine(shown: ShownStatus, now: Date, paint: Paint): string {
  const { agent, running, otherConfiguration, stateDirectory } = shown
  if (otherConfiguration !== null) {
    const whose = `the state in ${stateDirectory} is of another configuration, ${otherConfiguration}`
    return paint('yellow', `${whose}: this comes from the disk and its records`) + '\n'
  }
  if (agent === null) {
    return paint('yellow', 'no agent has reported: this comes from the disk and its records') + '\n'
  }
  const name = `agent ${agent.version}`
  const written = new Date(agent.writtenAt)
  if (agent.stoppedAt !== undefined) {
    return (
      paint('yellow', `${name} is not running: it ended in order ${age(new Date(agent.stoppedAt), now)} ago`) + '\n'
    )
  }
  if (!running) {
    return paint('red', `${name} is not running: it was killed, and last reported ${age(written, now)} ago`) + '\n'
  }
  if (now.getTime() - written.getTime() > longestSilence) {
    return paint('red', `${name} hangs: it last reported ${age(written, now)} ago`) + '\n'
  }
  const invalid = agent.configurationInvalid
  const suffix =
    invalid === undefined
      ? ''
      : paint('red', `\nits configuration file is invalid; the previous configuration is in force:\n${invalid}`)
  const unserved =
    agent.serverProblem === undefined
      ? ''
      : paint('yellow', `\nit serves neither health nor metrics, and tries again: ${agent.serverProblem}`)
  const state =
    agent.stateProblem === undefined
      ? ''
      : paint('red', `\n${agent.stateProblem}: this is what the agent wrote there before`)
  const changed =
    shown.configurationChanged && invalid === undefined
      ? paint(
          'yellow',
          `\n${agent.configuration?.file} has changed since the agent read it: run "holdfast reload", or see its log`,
        )
      : ''
  return `${name}, last reported ${age(written, now)} ago${suffix}${changed}${unserved}${state}\n`
}

function conditionOf({ conditions }: DirectoryStatus, type: Condition['type']): Condition | undefined {
  return conditions.find((condition) => condition.type === type)
}

/** Reasons that users need to see even though the directory's condition is True. */
const notable: ReadonlySet<Condition['reason']> = new Set([
  'CertificateExpired',
  'CertificateInvalid',
  'Held',
  'Relocating',
  'RolledBack',
])

/** The condition that most needs a reader: one that is not True, Published first; then a warning on a True one. */
function conditionToTell(directory: DirectoryStatus): Condition | undefined {
  const published = conditionOf(directory, 'Published')
  const fresh = conditionOf(directory, 'Fresh')
  if (published && (published.status !== 'True' || notable.has(published.reason))) return published
  return fresh && fresh.status !== 'True' ? fresh : undefined
}

function conditionCell(directory: DirectoryStatus, type: Condition['type'], paint: Paint): Cell {
  const status = conditionOf(directory, type)?.status ?? 'Unknown'
  const colour = status === 'True' ? 'green' : status === 'False' ? 'red' : 'yellow'
  return { text: status, paint: (text) => paint(colour, text) }
}
