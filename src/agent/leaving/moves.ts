import type { DirectoryConfiguration } from '../../config/types.js'
import { relocation } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { DirectoryFacts, DirectoryState } from '../directory-state.js'
import { beside } from '../file-systems.js'
import { loadHostPathUsers } from '../needed-modules.js'
import type { PassOutcome } from '../outcome.js'
import { failedOutcome } from '../publish.js'

/*
 * The old paths of directories that have moved (`movedFrom`). Each is a directory of the agent, too, with separate operations on its own
 * file system: a disk that hangs delays the old path alone. It needs nothing of the source, and gets the content of the new path.
 */

/** The configured directories, and the old paths of those that have moved. */
export function withOldPaths(directories: readonly DirectoryConfiguration[]): DirectoryConfiguration[] {
  return directories.flatMap((directory) => {
    const { movedFrom, path, place } = directory
    if (movedFrom === undefined) return [directory]
    // Without the configuration, the old path goes or stays as the new one does: onDrop is the same.
    const none = { beforePublish: [], validate: [], history: { keep: 0, maxAge: null } } as const
    return [directory, { ...directory, ...none, path: movedFrom.path, place: `${place}.movedFrom`, follows: path }]
  })
}

interface MoveOptions {
  readonly lockTimeout: number
  readonly signal: AbortSignal
  readonly log: Log
  readonly requireProven: () => boolean
  readonly agent?: string | undefined
}

/** One pass over an old path: publishes the new one's content there, and takes it away once no process needs it. Never rejects. */
export async function followMove(
  { movedFrom, follows: to, afterPublish, retire, retireTimeout }: DirectoryConfiguration,
  { lockTimeout, signal, log, requireProven, agent }: MoveOptions,
): Promise<PassOutcome> {
  try {
    if (movedFrom === undefined || to === undefined) throw new Error('this directory has not moved')
    const { path: from, keep } = movedFrom
    const hooks = afterPublish.map(({ key }) => key)
    const publication = {
      hooks,
      publisher: 'agent',
      agent,
      retireTimeout: retire === 'whenUnused' ? retireTimeout : undefined,
      requireProven: requireProven(),
    } as const
    const usedBy = async () => (await loadHostPathUsers()).describeHostPathUser(from)
    const atNew = <T>(work: () => Promise<T>): Promise<T> => beside(to, work)
    const progress = await relocation.goOn(to, { from, keep, publication, atNew, usedBy, lockTimeout, signal, log })
    return { kind: 'moving', to, ...progress }
  } catch (error) {
    const outcome = failedOutcome(error)
    return signal.aborted && !outcome.published ? { kind: 'aborted' } : outcome
  }
}

/** Whether the record of a directory speaks of a move that its configuration does not ask for: it was taken back, or is over. */
export function hasOtherMove({ record, configuration }: DirectoryFacts): boolean {
  if (configuration.follows !== undefined) return false
  const { movedTo, relocation } = record ?? {}
  return movedTo !== undefined || (relocation !== undefined && relocation.from !== configuration.movedFrom?.path)
}

/** Removes the record's word of the move: a later configuration starts over. */
export async function endOtherMove(
  state: DirectoryState,
  { lockTimeout, signal, log }: Pick<MoveOptions, 'lockTimeout' | 'signal' | 'log'>,
): Promise<void> {
  if (!hasOtherMove(state.facts)) return
  try {
    await relocation.end(state.path, { lockTimeout, signal, log })
    state.happened({ kind: 'move ended' })
  } catch (error) {
    log.warn({ directory: state.path }, `${messageOf(error)}; the next comparison retries`)
  }
}
