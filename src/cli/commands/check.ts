import type { ConsumerReport } from '../../check/consumers.js'
import type { Finding, Status } from '../../check/findings.js'
import type { AgentConfiguration } from '../../config/types.js'
import { painter, wantsColour, type Colour, type Paint } from '../output/colour.js'
import { Exit, exitCodes } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { inputName, loadForLooking, loadWithFlags, nodeName } from '../content/load.js'
import { selected } from '../content/select.js'
import { print } from '../output/print.js'
import { interruptible } from '../signals.js'
import { shortPath, table, type Cell } from '../output/table.js'
import { version } from '../words/version.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import {
  reportFlags,
  sourceFlags,
  headersFlag,
  configInputFlag,
  manifestDirectoryFlag,
  requireProvenFlag,
  timeoutFlag,
} from '../words/options.js'

const flags = [
  configInputFlag,
  flag('--offline', 'judge the configuration alone: no node, no source, no root', {
    conflicts: ['consumers', 'podManifestDir', 'requireProven'],
  }),
  headersFlag,
  timeoutFlag('how long to wait for each answer of the API server', 10_000, '10s'),
  requireProvenFlag,
  flag('--consumers', 'look also for who uses the directories, and who still uses old content'),
  manifestDirectoryFlag(', for --consumers (default: /etc/kubernetes/manifests)'),
  ...sourceFlags,
  ...reportFlags,
]

type CheckFlags = FlagsOf<typeof flags>

/** `holdfast check --config FILE` */
export const checkCommand = command({
  name: 'check',
  summary: 'check whether this node is fit: file systems, permissions, API access, free space',
  description: `Checks whether this node is fit for the configuration, and says what to do where it is not. For each directory: mount, file
system, an exchange tried beside the target, free space, owners, hooks, certificates against the clock; for the process:
capabilities, AIO, limits; for the source: whether it answers, and each permission that the agent needs. Run it where the
agent runs: in its pod, as its user.

With --consumers it also looks, in /proc and in the manifests of static pods, for who uses the directories: processes that still
have old content open, and mounts of a directory itself, which never show what is published next.

With --offline it judges the configuration alone, with every mistake and its place, and needs no node, no source and no root: for a
repository's CI. Names without a namespace then count as those of "default".

Beside each target, holdfast creates two empty directories, exchanges them, and removes them. It writes nothing else, runs
no hook, and reads no object from the API server.`,
  words: [['[path...]', 'only these directories of the configuration']],
  flags,
  examples: `  holdfast check --config /etc/holdfast.yaml
  holdfast check --config /etc/holdfast.yaml -o json
  holdfast check --config /etc/holdfast.yaml --consumers
  holdfast check --config deploy/holdfast.yaml --offline
  kubectl -n holdfast exec daemonset/holdfast -- holdfast check`,
  exitCodes: `0 fit (perhaps with warnings), 2 wrong usage or configuration, 4 not fit.`,
  run: ({ io, options }, paths) =>
    options.offline ? checkOffline(io, paths, options) : printNodeCheck(io, paths, options),
})

async function consumersOf({ directories }: AgentConfiguration, named: string | undefined): Promise<ConsumerReport> {
  const { findConsumers } = await import('../../check/consumers.js')
  const manifests = named ?? (await import('../../static-pods/host-path-users.js')).usualManifestDirectory
  return findConsumers(
    directories.map(({ path }) => path),
    { manifests, followLinks: true },
  )
}

/** Milliseconds to wait for a publication that goes on at a target in this moment. */
const lockTimeout = 5_000

/** The parser has found every mistake: it throws them, with their places. */
async function checkOffline(io: Io, paths: readonly string[], options: CheckFlags): Promise<void> {
  const configuration = await loadForLooking(options, io.stdin)
  const file = options.config === '-' ? inputName : configuration.file
  const directories = selected(configuration, paths).map(({ path }) => ({ path }))
  await print(
    io.stdout,
    options.output,
    { file, valid: true, directories },
    () => `${file} is a valid configuration of ${plural(directories.length, 'directory', 'directories')}\n`,
  )
}

async function printNodeCheck(io: Io, paths: readonly string[], options: CheckFlags): Promise<void> {
  const all = await loadWithFlags(options, io.stdin)
  const configuration = { ...all, directories: selected(all, paths) }
  const { checkNode } = await import('../../check/check.js')
  const consumers = options.consumers && (await consumersOf(configuration, options.podManifestDir))
  const findings = await interruptible(io, (signal) =>
    checkNode(configuration, {
      version: version(),
      environment: io.env,
      nodeName: nodeName(options, io.env),
      timeout: options.timeout,
      lockTimeout,
      signal,
      ...(consumers && { consumers }),
    }),
  )
  const count = (status: Status) => findings.filter((finding) => finding.status === status).length
  const [faults, warnings] = [count('FAULT'), count('WARN')]
  const document = { checks: findings, faults, warnings, ...(consumers && { consumers: consumers.consumers }) }
  await print(io.stdout, options.output, document, () =>
    findingsText(findings, painter(wantsColour(io.stdout, io.env)), io.stdout.columns, options.headers),
  )
  if (faults > 0) throw new Exit(exitCodes.fault)
}

const colours: Readonly<Record<Status, Colour>> = { OK: 'green', WARN: 'yellow', FAULT: 'red' }

/** A subject that is longer is shortened where the terminal is narrower than the table. */
const subjectWidth = 28

/** The table, with each advice on a separate line, and the verdict below it. */
export function findingsText(findings: readonly Finding[], paint: Paint, columns?: number, headers = true): string {
  const shown = (subject: string) => (columns === undefined ? subject : shortPath(subject, subjectWidth))
  const rows: (string | Cell)[][] = headers ? [['SUBJECT', 'CHECK', 'STATUS', 'FOUND']] : []
  let last = ''
  for (const { subject, check, status, found, advice } of findings) {
    const colour = colours[status]
    const cell = { text: status, paint: (text: string) => paint(colour, text) }
    rows.push([subject === last ? '' : shown(subject), check, cell, found])
    if (advice !== null) rows.push(['', '', '', { text: `-> ${advice}`, paint: (text) => paint('bold', text) }])
    last = subject
  }
  const count = (status: Status) => findings.filter((finding) => finding.status === status).length
  const [faults, warnings] = [count('FAULT'), count('WARN')]
  const counts = `${plural(faults, 'fault')}, ${plural(warnings, 'warning')}`
  const conclusion =
    faults > 0
      ? paint('red', `this node is not fit: ${counts}`)
      : paint(warnings > 0 ? 'yellow' : 'green', `this node is fit: ${counts}`)
  return `${table(rows, columns)}\n${conclusion}\n`
}

function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`
}
