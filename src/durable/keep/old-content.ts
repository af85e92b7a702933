import { isWholeSecond } from '../../change-times.js'
import { nameOf, parentOf } from '../../relative-path.js'
import { codeOf } from '../../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { Bound, inTree, makeWritable, readTree, type Tree, withOpen } from '../path/index.js'
import { inParallel } from '../../parallel.js'
import type { KnownEntry } from '../record/index.js'

/*
 * The old content of a directory, after the exchange: only entries that the publication has read may go. Another program can put more
 * there, or write to a file, between the reading and the exchange, by its path, and later through a descriptor that it holds.
 */

/** The known entries of an old content by their directory, which is '' for the target itself; parents before children. */
function byDirectory<Entry extends KnownEntry>(entries: readonly Entry[]): Map<string, Entry[]> {
  const found = new Map<string, Entry[]>([['', []]])
  for (const entry of entries) {
    if (entry.path === '') continue
    if (entry.type === 'directory') found.set(entry.path, [])
    found.get(parentOf(entry.path))?.push(entry)
  }
  return found
}

/**
 * Whether a directory is unchanged since its reading: its names, and the time of each inode's last change. Where the file system keeps whole
 * seconds, that may be the same after a change: there, its content. Of one that was not read whole, no name is new.
 */
export async function isAsRead(fs: FileSystem, root: Descriptor, { entries, isCut }: Tree): Promise<boolean> {
  if (isCut !== true && entries.some(isTimedInSeconds) && !(await holdsOnly(fs, root, entries))) return false
  const gone = new Set<string>()
  const isDirectoryAsRead = async (directory: Descriptor, expected: Tree['entries']): Promise<boolean> => {
    const names = new Set(expected.map(({ path }) => nameOf(path)))
    const listed = isCut ? [] : await fs.list(directory, names.size + 1)
    if (listed.some((name) => !names.has(name))) return false
    let same = true
    await inParallel(expected, fs.callsAtATime, async ({ path, type, changed }) => {
      const found = await fs.look(directory, nameOf(path))
      // Another program has removed the entry: holdfast need not keep it.
      if (found === undefined) gone.add(path)
      else if (found.type !== type || found.changed !== changed) same = false
    })
    return same
  }
  return inTree(fs, root, async (directories) => {
    for (const [path, expected] of byDirectory(entries)) {
      if (gone.has(path) || gone.has(parentOf(path))) gone.add(path)
      else if (!(await directories.use(path, (directory) => isDirectoryAsRead(directory, expected)))) return false
    }
    return true
  })
}

function isTimedInSeconds({ changed }: Tree['entries'][number]): boolean {
  return changed !== undefined && isWholeSecond(changed)
}

/** Whether all that a directory holds is among these entries, by type and content: the rest of what a predecessor was removing. */
export async function isPartOf(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  entries: readonly KnownEntry[],
): Promise<boolean> {
  return withOpen(
    fs,
    fs.openDirectory(parent, name),
    // The mount in it keeps it anyway.
    async (opened) => (await fs.mountsBelow(opened)).length > 0 || holdsOnly(fs, opened, entries),
  )
}

/** Whether all in an open directory is among these entries, by type and content. */
async function holdsOnly(fs: FileSystem, root: Descriptor, entries: readonly KnownEntry[]): Promise<boolean> {
  const known = new Map(entries.map((entry) => [entry.path, entry]))
  const { entries: found, isCut } = await readTree(fs, root, false, new Bound(entries))
  if (isCut) return false
  return found.every(({ path, type, sha256 }) => {
    const entry = known.get(path)
    return path === '' || (entry?.type === type && entry.sha256 === sha256)
  })
}

/**
 * Removes these entries of a directory, and nothing else. `gone`: paths that were removed before.
 * @throws ENOTEMPTY where a directory below holds unknown entries
 */
export async function removeEntries(
  fs: FileSystem,
  root: Descriptor,
  entries: readonly KnownEntry[],
  gone?: string,
): Promise<void> {
  const known = byDirectory(entries)
  await inTree(fs, root, async (directories) => {
    for (const [path, inIt] of known) {
      const removeFiles = async (directory: Descriptor): Promise<void> => {
        await makeWritable(fs, directory)
        const files = inIt.filter((entry) => entry.type !== 'directory' && entry.path !== gone)
        await inParallel(files, fs.callsAtATime, (file) => unlessGone(fs.removeFile(directory, nameOf(file.path))))
      }
      await unlessGone(directories.use(path, removeFiles))
    }
    // The deepest first.
    for (const path of [...known.keys()].slice(1).reverse()) {
      const removeIt = (parent: Descriptor): Promise<void> => fs.removeDirectory(parent, nameOf(path))
      await unlessGone(directories.use(parentOf(path), removeIt))
    }
  })
}

async function unlessGone(removal: Promise<unknown>): Promise<void> {
  try {
    await removal
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}
