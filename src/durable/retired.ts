import type { Log } from '../log.js'
import type { Descriptor, FileSystem } from './file-system.js'
import type { StagingClaims } from './quarantine.js'
import type { RecordBody, RetiredTree } from './record.js'

/*
 * Old content that stays until nobody uses it (`retire: whenUnused`): a process that works in the directory, or opens its files by a
 * directory that it holds open, still finds all of them. The exchange puts the old content under its staging name, where nobody finds
 * it by its path. The record of that exchange, and every later one, names it with its inode and with the time at which it goes in any
 * case; so recovery keeps it, and goes on with it after a crash. It goes only where the target is known to be durable, and after a
 * look that began when it was out of reach already: until then somebody may still have come to use it.
 */

/** Where retired content is. */
interface RetiredArea {
  readonly fs: FileSystem
  readonly parent: Descriptor
  /** Of the target, for people. */
  readonly path: string
  readonly log: Log
}

/** Records that name retired content say which inode that is, and what it held: for quarantine.ts. */
export function retiredClaims(records: readonly RecordBody[]): StagingClaims {
  const own = new Set(records.map(({ staging }) => staging?.name))
  return records.flatMap(({ boot, retired = [] }) =>
    retired
      .filter(({ name }) => !own.has(name))
      .map(({ name, inode, entries }) => {
        const staging = { name, staged: inode, old: inode, entries }
        return { boot, before: null, after: '', entries: [], staging }
      }),
  )
}

/** The retired content that is there; under the name of what an aborted exchange would have retired is what was staged. */
export async function findRetired(
  { fs, parent }: Pick<RetiredArea, 'fs' | 'parent'>,
  records: readonly RecordBody[],
): Promise<RetiredTree[]> {
  const found: RetiredTree[] = []
  const known = new Map(records.flatMap(({ retired = [] }) => retired.map((tree) => [tree.name, tree] as const)))
  for (const tree of known.values()) {
    if ((await fs.look(parent, tree.name))?.inode.toString() === tree.inode) found.push(tree)
  }
  return found
}

/** Whether it may go: nobody uses it, or its time is over. */
export async function isOver(
  { fs, parent, path, log }: RetiredArea,
  { name, until }: Pick<RetiredTree, 'name' | 'until'>,
): Promise<boolean> {
  const user = await fs.userOf(parent, name)
  if (user === undefined) return true
  if (fs.now() < until) {
    const end = new Date(until).toISOString()
    log.info({ path, retired: name }, `the old content of ${path} stays until nobody uses it, or until ${end}: ${user}`)
    return false
  }
  log.warn({ path, retired: name }, `the old content of ${path} goes after retireTimeout, though it is in use: ${user}`)
  return true
}

/** The names of those that may go. */
export async function overOf(area: RetiredArea, trees: readonly RetiredTree[]): Promise<string[]> {
  const over: string[] = []
  for (const tree of trees) if (await isOver(area, tree)) over.push(tree.name)
  return over
}
