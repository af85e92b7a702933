import type { FileSystem } from '../file-system.js'
import { DurableWriteError } from '../errors.js'
import { currentGeneration, keyLinks, topNames } from '../path/index.js'
import { type StoredRecord, withRecord } from '../record/index.js'
import { openOffMounts } from '../target/index.js'
import type { Descriptor } from '../file-system.js'

/*
 * Whether published content has disappeared: the cheapest check that finds a target removed or emptied, its parent replaced, or a mount
 * over it. Names alone count: a change of one among several files is up to the comparison.
 */

/** Whether a published directory has lost all its entries, or its record. Reads no content and takes no lock. */
export async function isGone(fs: FileSystem, target: string): Promise<boolean> {
  const isThere = await withRecord(fs, target, async (parent, name, [newest]) =>
    newest === undefined ? false : holdsAny(fs, target, parent, name, newest),
  )
  return isThere !== true
}

async function holdsAny(
  fs: FileSystem,
  target: string,
  parent: Descriptor,
  name: string,
  record: StoredRecord,
): Promise<boolean> {
  if ((await fs.look(parent, name))?.type !== 'directory') return false
  let opened: Descriptor
  try {
    opened = await openOffMounts(fs, target, parent, name)
  } catch (error) {
    if (error instanceof DurableWriteError) return false
    throw error
  }
  try {
    const names = topNames(record.entries.map(({ path }) => path))
    if (names.size === 0) return true
    // By name: others can have put any number of files there.
    if (record.kind === 'symlink') return await showsAny(fs, opened, names)
    for (const one of names) if ((await fs.look(opened, one)) !== undefined) return true
    return false
  } finally {
    await fs.close(opened)
  }
}

/** Whether consumers find anything in the form `symlink`: a link, while it leads anywhere. */
async function showsAny(fs: FileSystem, target: Descriptor, names: ReadonlySet<string>): Promise<boolean> {
  const generation = await currentGeneration(fs, target)
  if (generation === undefined || (await fs.look(target, generation)) === undefined) return false
  const links = await keyLinks(fs, target, names)
  return [...names].some((name) => links.has(name))
}
