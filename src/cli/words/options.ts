import type { RevisionObjects } from '../../static-pods/install/plan-from-api.js'
import { isObjectName } from '../../kubernetes-names.js'
import { UsageError } from './exit-codes.js'
import { type LogFormat, logFormats, logLevels } from '../output/logger.js'
import { type Flag, flag, parseGoBoolean, parseCount } from './command.js'
import type { FlagsOf } from './types.js'
import { nameFormats, outputFormats, type OutputFormat } from '../output/print.js'
import { collectNames, parseDurationFlag, parseName, parseOwner, parseRevisionFlag } from './option-values.js'

/* Flags that several commands share, so that they mean the same and are explained the same everywhere. */

const output = 'text; wide: text with more columns'

const outputFlag = flag('-o, --output <format>', `${output}; json or yaml: one document`, {
  choices: outputFormats,
  fallback: 'text',
  env: 'HOLDFAST_OUTPUT',
  global: true,
})

/** Of a command that is about paths. */
const pathOutputFlag = flag(
  '-o, --output <format>',
  `${output}; name, of commands about paths: these alone; json or yaml: one document`,
  { choices: nameFormats, fallback: 'text', env: 'HOLDFAST_OUTPUT', global: true },
)

/** `fallback`: of a daemon `auto`; people run the other commands, also where a pipe takes what these say. */
const logFormatFlag = (fallback: LogFormat) =>
  flag('--log-format <format>', 'format of the log; auto: text on a terminal, JSON lines elsewhere', {
    choices: logFormats,
    fallback,
    shown: '"text", of agent and monitor "auto"',
    env: 'HOLDFAST_LOG_FORMAT',
    global: true,
  })

const logFlagsOf = (format: LogFormat) => [
  flag('--log-level <level>', 'least severe level to log (to standard error)', {
    choices: logLevels,
    fallback: 'info',
    env: 'HOLDFAST_LOG_LEVEL',
    global: true,
  }),
  logFormatFlag(format),
  // And klog's `-v=4`, beside --log-level.
  flag('-q, --quiet', 'print no text and log errors alone: the exit code tells; -o json prints still', {
    global: true,
  }),
  flag('-v, --v <number>', 'verbosity as in klog: 4 and above, or none, log all, as --log-level debug does', {
    parse: parseCount,
    global: true,
  }),
]

export const logFlags = logFlagsOf('text')

/** Of a daemon. */
export const daemonLogFlags = logFlagsOf('auto')

/** The output and logging flags of every command. */
export const reportFlags = [outputFlag, ...logFlags]

/** The same of a command that is about paths. */
export const pathReportFlags = [pathOutputFlag, ...logFlags]

/** The same of a daemon. */
export const daemonReportFlags = [outputFlag, ...daemonLogFlags]

export type OutputFlags = FlagsOf<typeof pathReportFlags> & { readonly output: OutputFormat }

/** How to reach an API server, as kubectl's users know it. */
export const apiFlags = [
  flag('--kubeconfig <file>', 'kubeconfig to use, in place of a configured one', {
    env: 'HOLDFAST_KUBECONFIG',
    global: true,
  }),
  flag('--context <name>', "the kubeconfig's context to use", { env: 'HOLDFAST_CONTEXT', global: true }),
]

export const namespaceFlag = flag('-n, --namespace <name>', 'namespace for objects named without one', {
  env: 'HOLDFAST_NAMESPACE',
  global: true,
})

const thisNode = 'this node, as the cluster calls it (also: NODE_NAME)'

/** Where objects come from. */
export const sourceFlags = [
  ...apiFlags,
  namespaceFlag,
  flag('--node-name <name>', thisNode, { env: 'HOLDFAST_NODE_NAME', global: true }),
]

export type SourceFlags = FlagsOf<typeof sourceFlags>

/** As the help of the program explains them, for all commands. */
export const globalFlags: readonly Flag[] = [...pathReportFlags, ...sourceFlags]

export const headersFlag = flag('--no-headers', 'print the table without its first line')

/** Where the configuration is that no flag names. */
export const usualConfiguration = '/etc/holdfast/holdfast.yaml'

const configFlagOf = (input: string) =>
  flag('-c, --config <file>', `the configuration file${input} (default: ${usualConfiguration})`, {
    env: 'HOLDFAST_CONFIG',
    usual: usualConfiguration,
  })

export const configFlag = configFlagOf('')

/** Of a command that reads the configuration once and obeys no part of it, so that it takes standard input, too. */
export const configInputFlag = configFlagOf('; -: standard input')

export const ownerFlag = flag('--owner <uid:gid>', 'owner, as numbers (default: the user who runs this)', {
  parse: parseOwner,
})

/** `modes`: the attribute names of the flags of the command that it excludes beside `owner`. */
export const keepAttributesFlag = (modes: readonly string[]) =>
  flag('--keep-attributes', 'keep mode and owner of the target being replaced', { conflicts: [...modes, 'owner'] })

export const dryRunFlag = flag('--dry-run', 'print what would change (paths and digests), write nothing')

const requireProven = 'refuse file systems on which durability is not proven (not ext4, xfs, btrfs)'

export const requireProvenFlag = flag('--require-proven', requireProven)

/** Each flag of the agent is a variable, too. */
export const agentRequireProvenFlag = flag('--require-proven', requireProven, { env: 'HOLDFAST_REQUIRE_PROVEN' })

/** `note`: where kubelet's own place counts without it, or what it is for. */
export const manifestDirectoryFlag = (note = '') =>
  flag('--pod-manifest-dir <dir>', `kubelet's manifest directory${note}`)

export const manifestsLockFlag = flag('--pod-manifests-lock-file <file>', 'lock (flock) to hold while manifests change')

const ofAgent = 'of the agent that may run here; without it, /var/lib/holdfast'
export const stateDirectoryFlag = flag('--state-directory <dir>', ofAgent)

export const releaseFlag = flag('--release', 'publish even what an operator holds, and let it go')

/** `fallback`: milliseconds, and as the help has it. */
export const timeoutFlag = (description: string, fallback: number, shown: string) =>
  flag('--timeout <duration>', description, { parse: parseDurationFlag, fallback, shown })

export const lockTimeoutFlag = flag('--lock-timeout <duration>', 'how long to wait for another holder of the lock', {
  parse: parseDurationFlag,
  fallback: 0,
  shown: '0: fails at once, with exit code 75',
})

/** The flags that `replace` and `write` have in common. */
export const publishingFlags = [
  flag(
    '--force',
    'publish even what an agent keeps, which undoes it unless it is held: run "holdfast hold" first; a hold stays; and ' +
      'what a rollout that has not ended may take back',
  ),
  flag('--parents', 'make the directories above the target that are missing'),
  dryRunFlag,
  requireProvenFlag,
  releaseFlag,
  lockTimeoutFlag,
  ...pathReportFlags,
]

export function publicationOptions(options: FlagsOf<typeof publishingFlags> & { readonly keepAttributes?: true }) {
  const { parents, requireProven, release, force, lockTimeout, keepAttributes } = options
  return {
    attributes: keepAttributes ? ('keep' as const) : ('set' as const),
    parents: parents ?? false,
    requireProven: requireProven ?? false,
    held: release ? ('release' as const) : force ? ('keep' as const) : ('refuse' as const),
    lockTimeout,
  }
}

/* Flags of install, prune and monitor, as OpenShift's installer, prune and startup-monitor commands take them. */

/** A template's empty text means that the name is not set. */
const parseNodeName = (text: string): string => (text === '' ? text : parseName(text.toLowerCase()))

export const nodeNameFlag = flag('--node-name <name>', thisNode, {
  parse: parseNodeName,
  env: 'HOLDFAST_NODE_NAME',
  global: true,
})

/** Of rights, which count for every node where none is named. */
export const anyNodeNameFlag = flag('--node-name <name>', 'the node (default: any; also: NODE_NAME)', {
  parse: parseNodeName,
  env: 'HOLDFAST_NODE_NAME',
})

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

/** A flag that a command accepts without effect and does not explain: no type of flags knows it. */
export const acceptedFlag = (words: string, parse?: (text: string) => unknown): Flag<never, never> =>
  flag(words, '', { hidden: true, ...(parse && { parse }) }) as Flag<never, never>

/** klog's other flags: holdfast logs to standard error, as JSON lines or readable. */
export const klogFlags = [
  ...['add-dir-header', 'alsologtostderr', 'logtostderr', 'one-output', 'skip-headers', 'skip-log-headers'].map(
    (name) => acceptedFlag(`--${name} [boolean]`, parseGoBoolean),
  ),
  ...['log-backtrace-at', 'log-dir', 'log-file', 'log-file-max-size', 'stderrthreshold', 'vmodule'].map((name) =>
    acceptedFlag(`--${name} <value>`),
  ),
]

/** `hint`: another possible meaning. @throws UsageError that names every missing flag */
export function requireFlags(flags: Readonly<Record<string, unknown>>, hint = ''): void {
  const missing = Object.keys(flags).filter((flag) => {
    const value = flags[flag]
    return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  })
  if (missing.length > 0)
    throw new UsageError(`${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing${hint}`)
}

const list = <const F extends string>(flags: F, description: string) =>
  flag(flags, description, { parse: collectNames })

/** The flags that choose the objects of a revision, for `install` and `rbac install`. */
export const revisionFlags = [
  flag('--revision <number>', 'the revision to install', { parse: parseRevisionFlag }),
  flag('-n, --namespace <name>', 'namespace of the objects', { parse: parseName, env: 'HOLDFAST_NAMESPACE' }),
  flag('--pod <name>', 'name of the pod: ConfigMap POD-REVISION holds its manifests', { parse: parseName }),
  list('--secrets <names>', 'Secrets NAME-REVISION that go into the revision; repeat the flag, or use commas'),
  list('--optional-secrets <names>', 'the same, but they may be absent'),
  list('--configmaps <names>', 'ConfigMaps NAME-REVISION that go into the revision'),
  list('--optional-configmaps <names>', 'the same, but they may be absent'),
  flag('--cert-dir <dir>', 'directory for objects without revisions; used as it is'),
  list('--cert-secrets <names>', 'Secrets NAME that go into --cert-dir'),
  list('--optional-cert-secrets <names>', 'the same, but they may be absent'),
  list('--cert-configmaps <names>', 'ConfigMaps NAME that go into --cert-dir'),
  list('--optional-cert-configmaps <names>', 'the same, but they may be absent'),
]

/** Where `install` puts it. */
export const placeFlags = [
  flag('--resource-dir <dir>', 'parent of the revisions, DIR/POD-REVISION'),
  manifestDirectoryFlag(),
  manifestsLockFlag,
  flag('--timeout-duration <duration>', 'time limit for the whole run', {
    parse: parseDurationFlag,
    fallback: 120_000,
    shown: '2m0s',
  }),
]

/** `more`: further flags that the command needs. @throws UsageError that names all that are missing */
export function revisionObjects(
  flags: FlagsOf<typeof revisionFlags>,
  more: Readonly<Record<string, unknown>> = {},
): RevisionObjects {
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
