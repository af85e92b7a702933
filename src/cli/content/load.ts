import type { AgentConfiguration, ServerAddress, SourceConfiguration } from '../../config/types.js'
import type { Trust } from '../../trust.js'
import type { Io } from '../output/io.js'
import { usualConfiguration, type SourceFlags } from '../words/options.js'
import { UsageError } from '../words/exit-codes.js'

/** The name of a configuration from standard input, for messages. */
export const inputName = 'standard input'

export interface LoadFlags extends SourceFlags {
  readonly config?: string
  readonly listen?: ServerAddress
  readonly requireProven?: true
  /** Where to look for a kubeconfig that neither the file nor a flag names. */
  readonly search?: 'kubectl'
}

/**
 * Loads the configuration of a command that runs its hooks and publishes its contents. Warns of files that other users may write to, or
 * refuses them. Throws UntrustedError, and the errors of loadWithFlags.
 */
export async function loadTrusted(options: LoadFlags, trust: Trust): Promise<AgentConfiguration> {
  const [configuration, { obeyedBy }] = await Promise.all([
    loadWithFlags(options),
    import('../../directories/obeyed.js'),
  ])
  for (const obeyed of await obeyedBy(configuration)) await trust.obey(obeyed, configuration.requireTrusted)
  trust.required = configuration.requireTrusted
  return configuration
}

/**
 * Reads the configuration file; flags win over its values. Throws UsageError where the user names no file,
 * ConfigurationError for a faulty one.
 */
export async function loadWithFlags(options: LoadFlags, stdin?: Io['stdin']): Promise<AgentConfiguration> {
  return load(options, stdin, async (source) => {
    const { namespaceOf } = await import('../../agent/open-source.js')
    return namespaceOf(withFlags(source, options))
  })
}

async function load(
  options: LoadFlags,
  stdin: Io['stdin'] | undefined,
  defaultNamespace: string | ((source: SourceConfiguration) => Promise<string | undefined>),
): Promise<AgentConfiguration> {
  if (options.config === undefined || options.config === '') {
    throw new UsageError(
      `--config FILE is missing: name the configuration file, or set HOLDFAST_CONFIG; there is no ${usualConfiguration}`,
    )
  }
  const { loadConfiguration, readConfiguration } = await import('../../config/parse.js')
  const names = { namespace: options.namespace, defaultNamespace }
  const configuration =
    options.config === '-'
      ? await readConfiguration(inputOrRefuse(stdin), inputName, names)
      : await loadConfiguration(options.config, names)
  return {
    ...configuration,
    requireProven: configuration.requireProven || options.requireProven === true,
    source: withFlags(configuration.source, options),
    ...(options.listen ? { server: { ...options.listen, hosts: configuration.server?.hosts ?? [] } } : {}),
  }
}

/** @throws UsageError of a command that obeys its configuration, whose owner counts, or that reads it again */
function inputOrRefuse(stdin: Io['stdin'] | undefined): Io['stdin'] {
  if (stdin !== undefined) return stdin
  throw new UsageError('--config -: this command looks at the file itself, perhaps more than once: name a file')
}

function withFlags(source: SourceConfiguration, options: LoadFlags): SourceConfiguration {
  const { kubeconfig, context, namespace, search } = options
  if (source.type !== 'kubernetes') {
    refuseClusterFlags(options)
    return namespace === undefined ? source : { ...source, namespace }
  }
  return {
    ...source,
    kubeconfig: kubeconfig ?? source.kubeconfig,
    ...(context !== undefined && { context }),
    ...(search !== undefined && { search }),
  }
}

/** A flag without an effect is a misunderstanding: its user believes that holdfast asks a cluster. */
function refuseClusterFlags({ kubeconfig, context }: SourceFlags): void {
  const given = kubeconfig !== undefined ? '--kubeconfig' : context !== undefined ? '--context' : undefined
  if (given === undefined) return
  const variable = given === '--kubeconfig' ? 'HOLDFAST_KUBECONFIG' : 'HOLDFAST_CONTEXT'
  throw new UsageError(
    `${given} (or ${variable}) has no effect: the configured source is files; leave it out, or configure source.kubernetes`,
  )
}

/**
 * The same for commands that only look at the disk. They ask no source for objects, so that names without a namespace are no reason
 * to read a kubeconfig.
 */
export function loadForLooking(options: LoadFlags, stdin?: Io['stdin']): Promise<AgentConfiguration> {
  return load(options, stdin, 'default')
}

/**
 * The same for `rbac`, on any machine: the node's kubeconfig need not be here. `podNamespace`: that of
 * the service account that the agent's pod has.
 */
export function loadForRights(
  options: LoadFlags,
  podNamespace: string,
  stdin?: Io['stdin'],
): Promise<AgentConfiguration> {
  return load(options, stdin, async (source) => {
    if (source.type === 'kubernetes' && source.kubeconfig === undefined) return podNamespace
    const { namespaceOf } = await import('../../agent/open-source.js')
    // Without a namespace, the configuration's own error names the field that lacks one.
    return namespaceOf(source).catch(() => undefined)
  })
}

/**
 * This node's name: the flag, HOLDFAST_NODE_NAME, NODE_NAME; else the empty string. In lower case, as kubelet registers a host whose name
 * has capitals (GetHostname in component-helpers/node/util/hostname.go); systemd's %H has them.
 */
export function nodeName(options: SourceFlags, environment: NodeJS.ProcessEnv): string {
  return (options.nodeName ?? environment.NODE_NAME ?? '').toLowerCase()
}
