import { stat } from 'node:fs/promises'
import type { AgentConfiguration, DirectoryConfiguration } from '../../config/types.js'
import type { ContentCheck, PublicationOptions } from '../../durable/types.js'
import { codeOf, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { NotPublished, UsageError } from '../words/exit-codes.js'
import { loadForLooking } from './load.js'
import { pathArgument } from '../words/target.js'

/* `beforePublish` of a directory, for the commands that publish there by themselves. */

interface CheckContext {
  readonly log: Log
  readonly signal: AbortSignal
}

interface ContentCheckFlags {
  readonly config?: string
  /** Of the agent that may run here. */
  readonly stateDirectory?: string
  /** false: the operator says that no command looks at the content. */
  readonly check: boolean
}

/** undefined where the directory has none. */
export async function contentCheck(
  directory: DirectoryConfiguration,
  context: CheckContext,
): Promise<ContentCheck | undefined> {
  if (directory.beforePublish.length === 0) return undefined
  const { ConfiguredCheck } = await import('../../agent/content-check.js')
  return new ConfiguredCheck(directory, { ...context, rejection: undefined })
}

/** The conditions that a configuration puts on every publication of its directory. */
type Conditions = Pick<PublicationOptions, 'check' | 'requireProven'>

/**
 * The same, and `requireProven`, for a command that needs nothing more of a configuration: by the named file, or by the file that the agent
 * of this node has in force. Where no agent's state leads to the directory, a warning says that no check sees the content.
 * @throws UsageError where the named file has another directory; ConfigurationError for a faulty file; NotPublished where there is an
 *   agent, and its configuration in force is unknown
 */
export async function findConditions(
  target: string,
  options: ContentCheckFlags,
  context: CheckContext,
): Promise<Conditions> {
  const { config = '', check } = options
  if (!check) return {}
  const asked = config === '' ? await askAgent(target, options, context.log) : await loadForLooking({ config })
  if (asked === undefined) return {}
  const { file, directories, requireProven } = asked
  const found = await configuredAt(target, directories)
  if (found !== undefined) {
    const examined = await contentCheck(found, context)
    return { requireProven, ...(examined && { check: examined }) }
  }
  const problem = `${target} is not a directory of ${file}, which has ${directories.map(({ path }) => path).join(', ')}`
  if (config !== '') throw new UsageError(`${problem}; with --no-check, no configuration is asked`)
  warnUnexamined(target, problem, context.log)
  return {}
}

/** Where the directory has moved, its old path is one of it, too. */
async function configuredAt(
  target: string,
  directories: readonly DirectoryConfiguration[],
): Promise<DirectoryConfiguration | undefined> {
  const byPath = new Map(
    directories.flatMap((directory) => [
      [directory.path, directory] as const,
      ...(directory.movedFrom ? [[directory.movedFrom.path, { ...directory, path: target }] as const] : []),
    ]),
  )
  const { sameTarget } = await import('../../durable/index.js')
  return byPath.get(target) ?? byPath.get((await sameTarget(target, [...byPath.keys()])) ?? '')
}

/** Reads the configuration that the agent of this state has in force, or had when it ended; undefined where nothing leads to its file. */
async function askAgent(
  target: string,
  { stateDirectory: given }: ContentCheckFlags,
  log: Log,
): Promise<AgentConfiguration | undefined> {
  const { defaultStateDirectory } = await import('../../config/document.js')
  const stateDirectory = given === undefined ? defaultStateDirectory : pathArgument(given)
  try {
    const known = await fileOfAgent(stateDirectory)
    const nothing = `no agent that keeps its state in ${stateDirectory} names a configuration`
    if (known === undefined && given !== undefined) throw new Error(nothing)
    if (known === undefined || !(await isOnThisNode(known.file))) {
      warnUnexamined(target, known === undefined ? nothing : `${known.file} is not here`, log)
      return undefined
    }
    const now = await loadForLooking({ config: known.file })
    if (now.digest === known.digest) return now
    throw new Error(
      `${known.file} is not what the agent of ${stateDirectory} has in force, or had when it ended (holdfast reload puts it in force)`,
    )
  } catch (error) {
    throw new NotPublished(
      `nobody knows which beforePublish examines what is published at ${target}; name the configuration with --config FILE, or publish unexamined with --no-check: ${messageOf(error)}`,
      target,
    )
  }
}

async function fileOfAgent(stateDirectory: string) {
  const { readAgentStatus } = await import('../../agent/report/read-status.js')
  return (await readAgentStatus(stateDirectory))?.configuration
}

/** That of an agent in a pod may not be at this path on its node. */
async function isOnThisNode(file: string): Promise<boolean> {
  try {
    await stat(file)
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return false
    throw error
  }
}

function warnUnexamined(target: string, why: string, log: Log): void {
  log.warn(
    { path: target },
    `no beforePublish examines what is published at ${target}: ${why}; if its configuration has one, name that: --config FILE`,
  )
}
