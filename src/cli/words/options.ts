import type { RevisionObjects } from '../../static-pods/install/plan-from-api.js'
import { isObjectName } from '../../kubernetes-names.js'
import { UsageError } from './exit-codes.js'
import { type LogFormat, logFormats, logLevels, type LogFlags } from '../output/logger.js'
import { type Command, Option, parseGoBoolean, parseCount } from './option.js'
import { nameFormats, outputFormats, type OutputFormat } from '../output/print.js'
import {
  collectNames,
  parseDirectoryMode,
  parseDurationFlag,
  parseFileMode,
  parseName,
  parseOwner,
  parseRevisionFlag,
} from './option-values.js'

/* Flags that several commands share, so that they mean the same and are explained the same everywhere. */

export interface OutputFlags extends LogFlags {
  readonly output: OutputFormat
}

const outputOption = () =>
  new Option('-o, --output <format>', 'text; wide: text with more columns; json or yaml: one document')
    .choices(outputFormats)
    .default('text')
    .env('HOLDFAST_OUTPUT')

/** Of a command that is about paths. */
const pathOutputOption = () =>
  new Option('-o, --output <format>', 'text; wide: with more columns; name: paths; json or yaml: one document')
    .choices(nameFormats)
    .default('text')
    .env('HOLDFAST_OUTPUT')

export const headersOption = () => new Option('--no-headers', 'print the table without its first line')

const logLevelOption = () =>
  new Option('--log-level <level>', 'least severe level to log (to standard error)')
    .choices(logLevels)
    .default('info')
    .env('HOLDFAST_LOG_LEVEL')

/** `fallback`: of a daemon `auto`; people run the other commands, also where a pipe takes what these say. */
const logFormatOption = (fallback: LogFormat) =>
  new Option('--log-format <format>', 'format of the log; auto: text on a terminal, JSON lines elsewhere')
    .choices(logFormats)
    .default(fallback)
    .env('HOLDFAST_LOG_FORMAT')

/** The logging flags of every command. */
export const logOptions = (fallback: LogFormat = 'text') => [
  logLevelOption(),
  logFormatOption(fallback),
  ...verbosityOptions(),
]

/** The output and logging flags of every command. */
export const reportOptions = (fallback?: LogFormat) => [outputOption(), ...logOptions(fallback)]

/** The same of a command that is about paths. */
export const pathReportOptions = () => [pathOutputOption(), ...logOptions()]

/** Where the configuration is that no flag names. */
export const usualConfiguration = '/etc/holdfast/holdfast.yaml'

/** `input`: the command reads the configuration once and obeys no part of it, so that it takes standard input, too. */
export const configOption = ({ input = false } = {}) =>
  new Option(
    '-c, --config <file>',
    `the configuration file${input ? '; -: standard input' : ''} (default: ${usualConfiguration})`,
  )
    .env('HOLDFAST_CONFIG')
    .usual(usualConfiguration)

/** Where objects come from, as kubectl's users know it. */
export interface SourceFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace?: string
  readonly nodeName?: string
}

export const sourceOptions = () => [
  new Option('--kubeconfig <file>', 'kubeconfig to use instead of the configured one').env('HOLDFAST_KUBECONFIG'),
  new Option('--context <name>', "the kubeconfig's context to use").env('HOLDFAST_CONTEXT'),
  new Option('-n, --namespace <name>', 'namespace for objects named without one').env('HOLDFAST_NAMESPACE'),
  new Option('--node-name <name>', 'this node, as the cluster calls it (also: NODE_NAME)').env('HOLDFAST_NODE_NAME'),
]

export const ownerOption = () =>
  new Option('--owner <uid:gid>', 'owner, as numbers (default: the user who runs this)').argParser(parseOwner)

export const directoryModeOption = (description: string, fallback: string) =>
  new Option('--mode <mode>', description).argParser(parseDirectoryMode).default(parseDirectoryMode(fallback), fallback)

export const fileModeOption = (flag: '--mode' | '--file-mode', description: string, fallback: string) =>
  new Option(`${flag} <mode>`, description).argParser(parseFileMode).default(parseFileMode(fallback), fallback)

/** `modes`: the attribute names of the flags of the command that it excludes beside `owner`. */
export const keepAttributesOption = (modes: readonly string[]) =>
  new Option('--keep-attributes', 'keep mode and owner of the target being replaced').conflicts([...modes, 'owner'])

export const dryRunOption = () => new Option('--dry-run', 'print what would change (paths and digests), write nothing')

export const requireProvenOption = () =>
  new Option('--require-proven', 'refuse file systems on which durability is not proven (not ext4, xfs, btrfs)')

export const releaseOption = () => new Option('--release', 'publish even what an operator holds, and let it go')

export const lockTimeoutOption = () =>
  new Option('--lock-timeout <duration>', 'how long to wait for another holder of the lock')
    .argParser(parseDurationFlag)
    .default(0, '0: fails at once, with exit code 75')

/** The flags that `replace` and `write` have in common. */
export interface PublishingFlags extends OutputFlags {
  readonly parents?: true
  readonly requireProven?: true
  readonly release?: true
  readonly force?: true
  readonly lockTimeout: number
  readonly keepAttributes?: true
  readonly dryRun?: true
}

export const publishingOptions = () => [
  new Option(
    '--force',
    'publish even what an agent keeps, which undoes it unless it is held: run "holdfast hold" first; a hold stays; and ' +
      'what a rollout that has not ended may take back',
  ),
  new Option('--parents', 'make the directories above the target that are missing'),
  dryRunOption(),
  requireProvenOption(),
  releaseOption(),
  lockTimeoutOption(),
  ...pathReportOptions(),
]

export function publicationOptions(options: PublishingFlags) {
  const { parents, requireProven, release, force, lockTimeout, keepAttributes } = options
  return {
    attributes: keepAttributes ? ('keep' as const) : ('set' as const),
    parents: parents ?? false,
    requireProven: requireProven ?? false,
    release: release ?? false,
    keepHold: force ?? false,
    lockTimeout,
  }
}

/** Whether the user named a flag's value, by its attribute name; it is not its default. */
export function isNamed(command: Command, attribute: string): boolean {
  return command.getOptionValueSource(attribute) === 'cli'
}

/* Flags of install, prune and monitor, as OpenShift's installer, prune and startup-monitor commands take them. */

export const nodeNameOption = (description: string) =>
  new Option('--node-name <name>', description)
    // A template's empty text means that the name is not set.
    .argParser((text: string) => (text === '' ? text : parseName(text.toLowerCase())))
    .env('HOLDFAST_NODE_NAME')

/** The flag's, or NODE_NAME's, which an operator's template sets; empty counts as not set. In lower case, as kubelet's. Throws UsageError. */
export function nodeNameOf(
  { nodeName }: { readonly nodeName?: string },
  environment: NodeJS.ProcessEnv,
): string | undefined {
  if (nodeName) return nodeName
  const name = environment.NODE_NAME?.toLowerCase() || undefined
  if (name !== undefined && !isObjectName(name))
    throw new UsageError(
      `NODE_NAME is ${JSON.stringify(environment.NODE_NAME)}: it must be a name that Kubernetes allows`,
    )
  return name
}

/** klog's other flags, which holdfast accepts without effect: it logs to standard error, as JSON lines or readable. */
export function addKlogOptions(command: Command): Command {
  for (const flag of [
    'add-dir-header',
    'alsologtostderr',
    'logtostderr',
    'one-output',
    'skip-headers',
    'skip-log-headers',
  ])
    command.addOption(new Option(`--${flag} [boolean]`).argParser(parseGoBoolean).hideHelp())
  for (const flag of ['log-backtrace-at', 'log-dir', 'log-file', 'log-file-max-size', 'stderrthreshold', 'vmodule'])
    command.addOption(new Option(`--${flag} <value>`).hideHelp())
  return command
}

/** `hint`: another possible meaning. @throws UsageError that names every missing flag */
export function requireFlags(flags: Readonly<Record<string, unknown>>, hint = ''): void {
  const missing = Object.keys(flags).filter((flag) => {
    const value = flags[flag]
    return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  })
  if (missing.length > 0)
    throw new UsageError(`${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing${hint}`)
}

/** The flags that choose the objects of a revision, for `install` and `rbac install`. */
export interface RevisionFlags {
  readonly revision?: number
  readonly namespace?: string
  readonly pod?: string
  readonly secrets?: readonly string[]
  readonly optionalSecrets?: readonly string[]
  readonly configmaps?: readonly string[]
  readonly optionalConfigmaps?: readonly string[]
  readonly certDir?: string
  readonly certSecrets?: readonly string[]
  readonly optionalCertSecrets?: readonly string[]
  readonly certConfigmaps?: readonly string[]
  readonly optionalCertConfigmaps?: readonly string[]
}

export interface PlaceFlags {
  readonly resourceDir?: string
  readonly podManifestDir?: string
  readonly podManifestsLockFile?: string
  readonly timeoutDuration: number
}

const list = (flags: string, description: string) => new Option(flags, description).argParser(collectNames)

export function addRevisionOptions(command: Command): Command {
  const options = [
    new Option('--revision <number>', 'the revision to install').argParser(parseRevisionFlag),
    new Option('-n, --namespace <name>', 'namespace of the objects').argParser(parseName).env('HOLDFAST_NAMESPACE'),
    new Option('--pod <name>', 'name of the pod: ConfigMap POD-REVISION holds its manifests').argParser(parseName),
    list('--secrets <names>', 'Secrets NAME-REVISION that go into the revision; repeat the flag, or use commas'),
    list('--optional-secrets <names>', 'the same, but they may be absent'),
    list('--configmaps <names>', 'ConfigMaps NAME-REVISION that go into the revision'),
    list('--optional-configmaps <names>', 'the same, but they may be absent'),
    new Option('--cert-dir <dir>', 'directory for objects without revisions; used as it is'),
    list('--cert-secrets <names>', 'Secrets NAME that go into --cert-dir'),
    list('--optional-cert-secrets <names>', 'the same, but they may be absent'),
    list('--cert-configmaps <names>', 'ConfigMaps NAME that go into --cert-dir'),
    list('--optional-cert-configmaps <names>', 'the same, but they may be absent'),
  ]
  for (const option of options) command.addOption(option)
  return command
}

export function addPlaceOptions(command: Command): Command {
  const options = [
    new Option('--resource-dir <dir>', 'parent of the revisions, DIR/POD-REVISION'),
    new Option('--pod-manifest-dir <dir>', "kubelet's manifest directory"),
    new Option('--pod-manifests-lock-file <file>', 'lock (flock) to hold while manifests change'),
    new Option('--timeout-duration <duration>', 'time limit for the whole run')
      .argParser(parseDurationFlag)
      .default(120_000, '2m0s'),
  ]
  for (const option of options) command.addOption(option)
  return command
}

/** `more`: further flags that the command needs. @throws UsageError that names all that are missing */
export function revisionObjects(flags: RevisionFlags, more: Readonly<Record<string, unknown>> = {}): RevisionObjects {
  const { revision, namespace, pod, configmaps, certDir } = flags
  const certificates = {
    secrets: flags.certSecrets ?? [],
    optionalSecrets: flags.optionalCertSecrets ?? [],
    configMaps: flags.certConfigmaps ?? [],
    optionalConfigMaps: flags.optionalCertConfigmaps ?? [],
  }
  const needed = {
    '--revision': revision,
    '--namespace': namespace,
    '--pod': pod,
    '--configmaps': configmaps,
    ...(Object.values(certificates).some((names) => names.length > 0) && {
      '--cert-dir (there are objects for it)': certDir,
    }),
    ...more,
  }
  // The command line names no object: its user may mean files.
  const fromFiles = namespace === undefined && configmaps === undefined && '--pod-manifest-dir' in more
  requireFlags(needed, fromFiles ? '; to install from files, name a manifest' : '')
  if (revision === undefined || namespace === undefined || pod === undefined) throw new Error('unreachable')
  return {
    revision,
    namespace,
    pod,
    secrets: flags.secrets ?? [],
    optionalSecrets: flags.optionalSecrets ?? [],
    configMaps: configmaps ?? [],
    optionalConfigMaps: flags.optionalConfigmaps ?? [],
    certificates: certDir ? { directory: certDir, ...certificates } : undefined,
  }
}

/** `-q` and klog's `-v=4`, beside --log-level. */
const verbosityOptions = () => [
  new Option('-q, --quiet', 'print no text and log errors alone: the exit code tells; -o json prints still'),
  new Option(
    '-v, --v <number>',
    'verbosity as in klog: 4 and above, or none, log all, as --log-level debug does',
  ).argParser(parseCount),
]
