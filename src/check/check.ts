/*
 * Whether this node is fit for a configuration: obstacles to publishing, durability, hooks and the source. It only
 * looks, but for two empty directories beside each target, which it exchanges and removes.
 */
import * as mountTable from '../mountinfo.js'
import { promises as fsp, constants } from 'node:fs'
import { release } from 'node:os'
import { dirname } from 'node:path'
import { objectName } from '../message-text.js'
import { referencesIn, referencesOf } from '../config/references.js'
import type { SourceConfiguration, SourceType } from '../config/source.js'
import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import { system } from '../durable/index.js'
import { nodeEventsNamespace } from '../kubernetes-names.js'
import { permissionsOf, type Permission } from '../config/permissions.js'
import { checkCapabilities, ownCredentials } from './capabilities.js'
import { checkConsumers, checkUnseen, type ConsumerReport } from './consumers.js'
import { checkDirectory } from './directory.js'
import type { DesiredReference } from './files-source.js'
import { fault, ok, warn, type Finding, type CheckResult, findingAdvice, codeOrMessage } from './findings.js'
import { checkContentCheck, checkHook } from './hooks.js'
import { seLinux } from './attributes.js'
import { obeyedBy } from '../directories/obeyed.js'
import { doubtOf, trustAdvice, type Obeyed } from '../trust.js'
import { rolloutsOf } from './rollouts.js'
import { checkCoreDump, checkKernel, checkProcess } from './this-process.js'
import type { FileSystem, Mount } from '../durable/file-system.js'
import { forgottenVolume } from '../durable/errors.js'

export interface CheckOptions {
  /** The process's environment, which may name the API server. */
  readonly environment: NodeJS.ProcessEnv
  /** holdfast's own, for the API server's audit log. */
  readonly version: string
  /** This node's name; empty where the environment does not name it. */
  readonly nodeName: string
  /** Milliseconds for each answer of the API server. */
  readonly timeout: number
  /** Milliseconds to wait for another process that holds a target's lock. */
  readonly lockTimeout: number
  readonly signal: AbortSignal
  /** The report of processes that use the targets; without it, the check leaves them out. */
  readonly consumers?: ConsumerReport
}

const thisProcess = 'this process'
const apiServer = 'API server'

/** kubectl's own, for objects in files that name no namespace. */
const defaultNamespace = 'default'

/** All findings, in the order: directories, state, this process, the source. */
export async function checkNode(configuration: AgentConfiguration, options: CheckOptions): Promise<Finding[]> {
  const { directories, requireProven, stateDirectory } = configuration
  const { signal, lockTimeout } = options
  const coreDumps = checkCoreDump()
  const identity = ownCredentials()
  const now = new Date()
  const context = { fs: system, identity, selinux: seLinux(), requireProven, now, lockTimeout, signal }
  const findings: Finding[] = []
  const add = (subject: string, results: readonly CheckResult[]) =>
    findings.push(...results.map((result) => ({ subject, ...result })))
  const reports = []
  for (const directory of directories) {
    signal.throwIfAborted()
    const report = await checkDirectory(directory, context)
    reports.push({ path: directory.path, ...report })
    const hooks = await Promise.all([
      ...directory.beforePublish.map((hook) => checkContentCheck(hook, identity)),
      ...directory.afterPublish.map((hook) => checkHook(hook, identity)),
    ])
    const users = options.consumers ? checkConsumers(directory, options.consumers) : []
    add(directory.path, [...report.results, ...hooks, ...users])
  }
  for (const { directory, state, message, advice = '' } of await rolloutsOf(directories)) {
    add(directory, [state === 'under-way' ? ok('rollout', message) : warn('rollout', message, advice)])
  }
  add(stateDirectory, [await checkStateDirectory(system, stateDirectory)])
  for (const { what, path } of await obeyedBy(configuration)) {
    add(path, [await checkTrust({ what, path }, configuration)])
  }
  const onBtrfs = reports.filter(({ fileSystem }) => fileSystem === 'btrfs').map(({ path }) => path)
  const ownerships = reports.map(({ ownership }) => ownership)
  add(thisProcess, [
    ...checkCapabilities(directories, ownerships, identity),
    ...(await checkProcess()),
    coreDumps,
    checkKernel(release(), onBtrfs),
    ...(options.consumers ? checkUnseen(options.consumers) : []),
  ])
  signal.throwIfAborted()
  findings.push(...(await checkSource(configuration.source, configuration, options, now)))
  return findings
}

/** Which users may change what holdfast obeys. */
async function checkTrust({ what, path }: Obeyed, { requireTrusted }: AgentConfiguration): Promise<CheckResult> {
  const doubt = await doubtOf(path)
  if (doubt === undefined) return ok('writers', `${what}: no user other than root and its own may write to it`)
  return (requireTrusted ? fault : warn)('writers', `${what}: ${doubt}`, trustAdvice)
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
    const { checkFilesSource } = await import('./files-source.js')
    const results = await checkFilesSource(path, namespace ?? defaultNamespace, desiredReferences(directories))
    return results.map((result) => ({ subject: path, ...result }))
  },
  async kubernetes(source, configuration, { nodeName, environment, version, timeout, signal }, now) {
    const { checkApi } = await import('./api.js')
    const permissions = neededPermissions(configuration, nodeName)
    const { file } = configuration
    // Each once, in the order in which it is asked for: the looks go on side by side, and what is refused is read again.
    const looks = new Map<string, CheckResult | undefined>()
    const obey = async (obeyed: Obeyed) => {
      // checkNode has the kubeconfig.
      if (obeyed.path === source.kubeconfig) return
      const name = `${obeyed.what} ${obeyed.path}`
      looks.set(name, looks.get(name))
      looks.set(name, await checkTrust(obeyed, configuration))
    }
    const options = { permissions, file, environment, version, timeout, now, signal, obey }
    const results = [checkNodeName(nodeName), ...(await checkApi(source, options)), ...looks.values()]
    return results.flatMap((result) => (result ? [{ subject: apiServer, ...result }] : []))
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

function checkNodeName(nodeName: string): CheckResult {
  if (nodeName !== '') return ok('node name', nodeName)
  return warn(
    'node name',
    'is not known: holdfast will record no events on the Node object',
    'set --node-name or NODE_NAME (fieldRef: spec.nodeName in a pod)',
  )
}

/** Each object once; it is optional only where no directory requires it. */
function desiredReferences(directories: readonly DirectoryConfiguration[]): DesiredReference[] {
  const desired = new Map<string, DesiredReference>()
  for (const directory of directories) {
    const required = new Set(
      directory.contents
        .filter(({ optional }) => !optional)
        .flatMap(referencesIn)
        .map(objectName),
    )
    for (const reference of referencesOf(directory)) {
      const name = objectName(reference)
      const optional = !required.has(name) && desired.get(name)?.optional !== false
      desired.set(name, { reference, optional })
    }
  }
  return [...desired.values()]
}

/** Where the agent keeps its status: writable, and there again after a restart. Nothing is written to find out. */
async function checkStateDirectory(fs: FileSystem, path: string): Promise<CheckResult> {
  let at = path
  for (;;) {
    try {
      const status = await fsp.stat(at)
      if (!status.isDirectory()) {
        return fault('state directory', `${at} is not a directory`, 'remove it, or set another stateDirectory')
      }
      break
    } catch (error) {
      const code = codeOrMessage(error)
      if (code !== 'ENOENT' || at === '/') {
        return fault('state directory', `could not read the attributes of ${at}: ${code}`, findingAdvice(code))
      }
      at = dirname(at)
    }
  }
  const advice = (code: string) => (code === 'EROFS' ? forgottenVolume(path, path) : undefined) ?? findingAdvice(code)
  const where = at === path ? '' : `does not exist: holdfast will create it in ${at}; `
  try {
    await fsp.access(at, constants.W_OK | constants.X_OK)
  } catch (error) {
    const code = codeOrMessage(error)
    return fault('state directory', `${where}holdfast may not write to ${at}: ${code}`, advice(code))
  }
  const mount = await mountOn(fs, at)
  if (mount === undefined) return ok('state directory', `${where}writable`)
  const own = forgottenVolume(path, path, mountTable.rootMount(), mount)
  const lost = own !== undefined || mount.type === 'tmpfs' || mount.type === 'ramfs'
  if (!lost) return ok('state directory', `${where}writable, on ${mount.type}`)
  return warn(
    'state directory',
    `${where}on ${own === undefined ? mount.type : "the container's own layer"}: the agent's last status is lost after a restart`,
    own ?? 'put it on a disk',
  )
}

/** undefined where it may be written to, and not be opened. */
async function mountOn(fs: FileSystem, path: string): Promise<Mount | undefined> {
  let descriptor
  try {
    descriptor = await fs.openPath(await fsp.realpath(path))
    return await fs.mount(descriptor)
  } catch {
    return undefined
  } finally {
    if (descriptor !== undefined) await fs.close(descriptor)
  }
}
