/*
 * Whether this node is fit for a configuration: what would be in the way of publishing, durability, hooks and the source. It only
 * looks, but for two empty directories beside each target, which are exchanged and removed.
 */
import { release } from 'node:os'
import { referencesOf } from '../config/references.js'
import type { SourceConfiguration, SourceType } from '../config/source.js'
import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import { NodeFileSystem } from '../durable/index.js'
import { nodeEventsNamespace, permissionsOf, type Permission } from '../objects/permissions.js'
import { describeReference } from '../objects/types.js'
import { capabilityVerdicts, ownIdentity } from './capabilities.js'
import { checkDirectory } from './directory.js'
import type { WantedReference } from './files-source.js'
import { ok, warn, type Finding, type Verdict } from './findings.js'
import { hookVerdict } from './hooks.js'
import { kernelVerdict } from './kernel.js'
import { seLinux } from './label.js'
import { stateDirectoryVerdict } from './state-directory.js'
import { coreDumpVerdict, processVerdicts } from './this-process.js'

export type { Finding, Status } from './findings.js'

export interface CheckOptions {
  /** holdfast's own, for the API server's audit log. */
  readonly version: string
  /** This node's name; empty where nobody says. */
  readonly nodeName: string
  /** Milliseconds for each answer of the API server. */
  readonly timeout: number
  /** Milliseconds to wait for another process that holds a target's lock. */
  readonly lockTimeout: number
  readonly signal: AbortSignal
}

const thisProcess = 'this process'
const apiServer = 'API server'

/** kubectl's own, for objects in files that name no namespace. */
const defaultNamespace = 'default'

/** Everything that was looked at, in the order: directories, state, this process, the source. */
export async function checkNode(configuration: AgentConfiguration, options: CheckOptions): Promise<Finding[]> {
  const { directories, requireProven, stateDirectory } = configuration
  const { signal, lockTimeout } = options
  const coreDumps = coreDumpVerdict()
  const fs = new NodeFileSystem()
  const identity = ownIdentity()
  const now = new Date()
  const context = { fs, identity, selinux: seLinux(), requireProven, now, lockTimeout }
  const findings: Finding[] = []
  const add = (subject: string, verdicts: readonly Verdict[]) =>
    findings.push(...verdicts.map((verdict) => ({ subject, ...verdict })))
  const reports = []
  for (const directory of directories) {
    signal.throwIfAborted()
    const report = await checkDirectory(directory, context)
    reports.push({ path: directory.path, ...report })
    const hooks = await Promise.all(directory.afterPublish.map((hook) => hookVerdict(hook, identity)))
    add(directory.path, [...report.verdicts, ...hooks])
  }
  add(stateDirectory, [await stateDirectoryVerdict(fs, stateDirectory)])
  const onBtrfs = reports.filter(({ fileSystem }) => fileSystem === 'btrfs').map(({ path }) => path)
  const ownerships = reports.map(({ ownership }) => ownership)
  add(thisProcess, [
    ...capabilityVerdicts(directories, ownerships, identity),
    ...(await processVerdicts()),
    coreDumps,
    kernelVerdict(release(), onBtrfs),
  ])
  signal.throwIfAborted()
  findings.push(...(await checkSource(configuration.source, configuration, options, now)))
  return findings
}

type SourceCheck<Type extends SourceType> = (
  source: SourceConfiguration<Type>,
  configuration: AgentConfiguration,
  options: CheckOptions,
  now: Date,
) => Promise<Finding[]>

/** How each kind of source is checked. */
const sourceChecks: { readonly [Type in SourceType]: SourceCheck<Type> } = {
  async files({ path, namespace }, { directories }) {
    const { filesVerdicts } = await import('./files-source.js')
    const verdicts = await filesVerdicts(path, namespace ?? defaultNamespace, wantedReferences(directories))
    return verdicts.map((verdict) => ({ subject: path, ...verdict }))
  },
  async kubernetes(source, configuration, { nodeName, version, timeout, signal }, now) {
    const { apiVerdicts } = await import('./api.js')
    const permissions = neededPermissions(configuration, nodeName)
    const { file } = configuration
    const verdicts = await apiVerdicts(source, { permissions, file, version, timeout, now, signal })
    return [nodeNameVerdict(nodeName), ...verdicts].map((verdict) => ({ subject: apiServer, ...verdict }))
  },
}

function checkSource<Type extends SourceType>(
  source: SourceConfiguration<Type>,
  ...context: [AgentConfiguration, CheckOptions, Date]
): Promise<Finding[]> {
  return sourceChecks[source.type](source, ...context)
}

/** Without a node's name the agent makes no event about the Node. */
function neededPermissions(configuration: AgentConfiguration, nodeName: string): Permission[] {
  const all = permissionsOf(configuration)
  if (nodeName !== '') return all
  const others = new Set(all.filter(({ purpose }) => purpose === 'objects').map(({ namespace }) => namespace))
  return all.filter(({ namespace }) => namespace !== nodeEventsNamespace || others.has(namespace))
}

function nodeNameVerdict(nodeName: string): Verdict {
  if (nodeName !== '') return ok('node name', nodeName)
  return warn(
    'node name',
    'is not known: there will be no events about the Node',
    'set --node-name or NODE_NAME (fieldRef: spec.nodeName in a pod)',
  )
}

/** Each object once; it is optional only where no directory requires it. */
function wantedReferences(directories: readonly DirectoryConfiguration[]): WantedReference[] {
  const wanted = new Map<string, WantedReference>()
  for (const directory of directories) {
    const required = new Set(
      directory.contents
        .filter(({ optional }) => !optional)
        .flatMap((content) =>
          content.type === 'object' ? [content.reference] : content.from.map(({ reference }) => reference),
        )
        .map(describeReference),
    )
    for (const reference of referencesOf(directory)) {
      const name = describeReference(reference)
      const optional = !required.has(name) && wanted.get(name)?.optional !== false
      wanted.set(name, { reference, optional })
    }
  }
  return [...wanted.values()]
}
