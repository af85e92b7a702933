import { codeOf, failureOf, messageOf } from '../../errors.js'
import { removeEntries } from './old-content.js'
import { quarantineOld, type StagingArea, type StagingClaims } from './quarantine.js'
import type { RecordBody, RetiredTree } from '../record/index.js'
import { atOnce, refuseMounted, remove, type RemovalLimits, withOpen } from '../path/index.js'

/*
 * Old content that stays until no process uses it (`retire: whenUnused`): a process that works in the directory, or opens its files by an
 * open descriptor of it, still finds all of them. The exchange puts the old content under its staging name, where the target's path no
 * longer leads. The record of that exchange, and every later one, names it with its inode and with the time at which it goes in any case;
 * so recovery keeps it, and goes on with it after a crash. It goes only where the target is known to be durable, and after a scan of
 * processes that began after the exchange: before that, a process may still have opened it.
 */

/** The claims of records on retired content, by its inode and entries: for quarantine.ts. */
export function retiredClaims(records: readonly RecordBody[]): StagingClaims {
  const own = new Set(records.map(({ staging }) => staging?.name))
  return records.flatMap(({ boot, retired = [] }) =>
    retired
      .filter(({ name }) => !own.has(name))
      .map(({ name, inode, entries, goesWhole }) => {
        const staging = { name, staged: inode, old: inode, ...(goesWhole !== true && { entries }) }
        return { boot, before: null, after: '', entries: [], staging }
      }),
  )
}

/** The retired content on the disk; after an aborted exchange, its name leads to staged content instead. */
export async function findRetired(
  { fs, parent }: Pick<StagingArea, 'fs' | 'parent'>,
  records: readonly RecordBody[],
): Promise<RetiredTree[]> {
  const found: RetiredTree[] = []
  const known = new Map(records.flatMap(({ retired = [] }) => retired.map((tree) => [tree.name, tree] as const)))
  for (const tree of known.values()) {
    if ((await fs.look(parent, tree.name))?.inode.toString() === tree.inode) found.push(tree)
  }
  return found
}

/** Whether it may go: no process uses it, or its time is over. */
export async function isOver(
  { fs, parent, path, log }: StagingArea,
  { name, until }: Pick<RetiredTree, 'name' | 'until'>,
): Promise<boolean> {
  const user = await fs.userOf(parent, name).catch((error: unknown) => `it cannot be looked at: ${messageOf(error)}`)
  if (user === undefined) return true
  if (fs.now() < until) {
    const end = new Date(until).toISOString()
    log.info({ path, retired: name }, `the old content of ${path} stays until nobody uses it, or until ${end}: ${user}`)
    return false
  }
  log.warn({ path, retired: name }, `the old content of ${path} goes after retireTimeout, though it is in use: ${user}`)
  return true
}

/**
 * Removes those that may go; what others filled, only where nobody waits for it. Answers those that are still there: the next record names
 * them, too.
 */
export async function removeUnused(
  area: StagingArea,
  trees: readonly RetiredTree[],
  limits: RemovalLimits,
): Promise<RetiredTree[]> {
  const staying: RetiredTree[] = []
  for (const tree of trees) {
    const isLater = tree.goesWhole === true && limits.most === atOnce
    if (isLater || !(await isOver(area, tree)) || !(await isRemoved(area, tree, limits))) staying.push(tree)
  }
  return staying
}

async function isRemoved(area: StagingArea, tree: RetiredTree, limits: RemovalLimits): Promise<boolean> {
  const failure = await failureOf(removeTree(area, tree, limits))
  if (failure === undefined) return true
  const { path, log } = area
  // An end is no failure.
  if (limits.signal?.aborted !== true)
    log.warn(
      { path, leftover: tree.name, error: String(failure) },
      'could not remove old content; the next run retries',
    )
  return false
}

/** A process that worked in it may have added files since the last scan. */
async function removeTree(
  area: StagingArea,
  { name, inode, entries, goesWhole }: RetiredTree,
  limits: RemovalLimits,
): Promise<void> {
  const { fs, parent, names } = area
  try {
    await withOpen(fs, fs.openDirectory(parent, name), async (opened) => {
      if ((await fs.attributes(opened)).inode.toString() !== inode) return
      await refuseMounted(fs, opened)
      if (goesWhole === true) return remove(fs, parent, name, limits)
      await removeEntries(fs, opened, entries)
      await fs.removeDirectory(parent, name)
    })
  } catch (error) {
    const random = names.stagingOf(name)
    if (codeOf(error) !== 'ENOTEMPTY' || random === undefined) throw error
    await quarantineOld(area, random)
  }
}
