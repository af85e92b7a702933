import { codeOf } from '../errors.js'
import type { Descriptor, FileSystem } from './file-system.js'
import type { KnownEntry } from './record.js'
import { makeWritable } from './remove.js'
import { readTree, type Tree } from './tree.js'

/*
 * The old content of a directory, once it is exchanged: only what was read of it may go. Another program can put more there, or write
 * to a file, between the reading and the exchange, by its path, and later through a descriptor that it holds.
 */

/** What is known of an old content: its entries by their directory, which is '' for the target itself. */
function byDirectory(entries: readonly KnownEntry[]): Map<string, KnownEntry[]> {
  const found = new Map<string, KnownEntry[]>()
  for (const entry of entries) {
    if (entry.path === '') continue
    const cut = entry.path.lastIndexOf('/')
    const parent = cut < 0 ? '' : entry.path.slice(0, cut)
    found.set(parent, [...(found.get(parent) ?? []), entry])
  }
  return found
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Whether a directory holds what was read of it, unchanged since: names, and the time of each inode's last change. */
export async function isAsRead(fs: FileSystem, root: Descriptor, { entries }: Tree): Promise<boolean> {
  const known = byDirectory(entries)
  const isDirectoryAsRead = async (directory: Descriptor, path: string): Promise<boolean> => {
    const expected = known.get(path) ?? []
    const names = new Set(expected.map((entry) => nameOf(entry.path)))
    if ((await fs.list(directory)).some((name) => !names.has(name))) return false
    for (const entry of expected) {
      const found = await fs.look(directory, nameOf(entry.path))
      // What has gone is nobody's loss.
      if (found === undefined) continue
      if (found.type !== entry.type || found.changed !== (entry as Tree['entries'][number]).changed) return false
      if (found.type === 'directory' && !(await inDirectory(fs, directory, entry.path, isDirectoryAsRead))) return false
    }
    return true
  }
  return isDirectoryAsRead(root, '')
}

/** Whether all that a directory holds is among these entries, by type and content: the rest of what a predecessor was removing. */
export async function isPartOf(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  entries: readonly KnownEntry[],
): Promise<boolean> {
  const opened = await fs.openDirectory(parent, name)
  try {
    // It is left as it is anyway, for what is mounted in it.
    if ((await fs.mountsBelow(opened)).length > 0) return true
    const known = new Map(entries.map((entry) => [entry.path, entry]))
    const { entries: found } = await readTree(fs, opened, false)
    return found.every(({ path, type, sha256 }) => {
      const entry = known.get(path)
      return path === '' || (entry?.type === type && entry.sha256 === sha256)
    })
  } finally {
    await fs.close(opened)
  }
}

/**
 * Removes these entries of a directory, and nothing else. `gone`: one that has been removed already.
 * @throws ENOTEMPTY where a directory below holds more than is known
 */
export async function removeEntries(
  fs: FileSystem,
  root: Descriptor,
  entries: readonly KnownEntry[],
  gone?: string,
): Promise<void> {
  const known = byDirectory(entries)
  const removeIn = async (directory: Descriptor, path: string): Promise<void> => {
    await makeWritable(fs, directory)
    for (const entry of known.get(path) ?? []) {
      if (entry.path === gone) continue
      const name = nameOf(entry.path)
      if (entry.type === 'directory') {
        await unlessGone(inDirectory(fs, directory, entry.path, removeIn))
        await unlessGone(fs.removeDirectory(directory, name))
      } else await unlessGone(fs.removeFile(directory, name))
    }
  }
  await removeIn(root, '')
}

async function inDirectory<T>(
  fs: FileSystem,
  parent: Descriptor,
  path: string,
  use: (directory: Descriptor, path: string) => Promise<T>,
): Promise<T> {
  const opened = await fs.openDirectory(parent, nameOf(path))
  try {
    return await use(opened, path)
  } finally {
    await fs.close(opened)
  }
}

async function unlessGone(removal: Promise<unknown>): Promise<void> {
  try {
    await removal
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}
