import { nameOf, parentOf } from '../../relative-path.js'
import { fsyncAll } from './barrier.js'
import type { Descriptor, EntryType, FileSystem } from '../file-system.js'
import { entriesBelow, OpenDirectories } from './open-directories.js'
import { Scope } from './scope.js'

interface Below {
  readonly path: string
  readonly type: EntryType
}

/**
 * fsync of all files and directories below the open `root`, and of the descriptors `open`: in parallel, as far as the limit of descriptors
 * lets it. @throws the system's first failure
 */
export async function syncBelow(fs: FileSystem, root: Descriptor, open: readonly Descriptor[]): Promise<void> {
  const directories = new OpenDirectories(fs, root)
  try {
    const all: Below[] = []
    for await (const entry of entriesBelow(directories)) {
      if (entry.type === 'file' || entry.type === 'directory') all.push(entry)
    }
    // The deepest first, since they are reached through the others.
    all.reverse()
    for (let from = 0; from === 0 || from < all.length; from += fs.stagedFiles) {
      const until = from + fs.stagedFiles
      await syncEach(directories, all.slice(from, until), until < all.length ? [] : open)
    }
  } finally {
    await directories.closeAll()
  }
}

async function syncEach(
  directories: OpenDirectories,
  entries: readonly Below[],
  open: readonly Descriptor[],
): Promise<void> {
  const { fs } = directories
  const scope = new Scope(fs)
  try {
    const opened: Descriptor[] = []
    for (const { path, type } of entries) {
      const openFile = (parent: Descriptor): Promise<Descriptor> => fs.openFile(parent, nameOf(path))
      const opening = type === 'directory' ? directories.take(path) : directories.use(parentOf(path), openFile)
      opened.push(await scope.keep(opening))
    }
    await fsyncAll(fs, [...opened, ...open])
  } finally {
    await scope.closeAll()
  }
}
