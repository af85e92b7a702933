import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import type { ContentCheck } from '../durable/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { UsageError } from './exit-codes.js'
import { loadForLooking } from './load.js'
import { pathArgument } from './target.js'

/* `beforePublish` of a directory, for the commands that publish there by themselves. */

interface CheckContext {
  readonly log: Log
  readonly signal: AbortSignal
}

export interface CheckOptions {
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
  const { ConfiguredCheck } = await import('../agent/content-check.js')
  return new ConfiguredCheck(directory, { ...context, rejection: undefined })
}

/**
 * The same for a command that needs nothing else of a configuration: by the file that is named, or by the one that the agent of this node
 * has in force. Where none is found, a warning says that nobody looks at the content.
 * @throws UsageError where the file that is named has another directory; ConfigurationError for what is wrong with it
 */
export async function findContentCheck(
  target: string,
  options: CheckOptions,
  context: CheckContext,
): Promise<ContentCheck | undefined> {
  const { config = '', check } = options
  if (!check) return undefined
  const directory =
    config === ''
      ? await directoryOfAgent(target, options, context.log)
      : await directoryOf(target, await loadForLooking({ config }))
  return directory && contentCheck(directory, context)
}

/** Where the directory has moved, its old path is one of it, too. */
async function directoryOf(target: string, { file, directories }: AgentConfiguration): Promise<DirectoryConfiguration> {
  const byPath = new Map(
    directories.flatMap((directory) => [
      [directory.path, directory] as const,
      ...(directory.movedFrom ? [[directory.movedFrom.path, { ...directory, path: target }] as const] : []),
    ]),
  )
  const paths = [...byPath.keys()]
  const { sameTarget } = await import('../durable/index.js')
  const found = byPath.get(target) ?? byPath.get((await sameTarget(target, paths)) ?? '')
  if (found) return found
  throw new UsageError(
    `${target} is not a directory of ${file}, which has ${paths.join(', ')}; with --no-check, no configuration is asked`,
  )
}

async function directoryOfAgent(
  target: string,
  { stateDirectory }: CheckOptions,
  log: Log,
): Promise<DirectoryConfiguration | undefined> {
  try {
    const file = await fileOfAgent(stateDirectory)
    return await directoryOf(target, await loadForLooking({ config: file }))
  } catch (error) {
    const why = messageOf(error)
    log.warn(
      { path: target },
      `no beforePublish examines what is published at ${target}: ${why}; if its configuration has one, name that: --config FILE`,
    )
    return undefined
  }
}

/** Which file the agent that keeps its state there has in force, or had when it ended. */
async function fileOfAgent(given: string | undefined): Promise<string> {
  const [{ readStatusFile }, { defaultStateDirectory }] = await Promise.all([
    import('../agent/status-file.js'),
    import('../config/document.js'),
  ])
  const stateDirectory = given === undefined ? defaultStateDirectory : pathArgument(given)
  const file = (await readStatusFile(stateDirectory))?.agent?.configuration?.file
  if (file === undefined) throw new Error(`no agent that keeps its state in ${stateDirectory} names a configuration`)
  return file
}
