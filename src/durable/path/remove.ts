import { nameOf, parentOf } from '../../relative-path.js'
import { codeOf, failureOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { inside, OpenDirectories } from './open-directories.js'

/** Removes the entry of this name: a file, a link (without following it), or a directory with all of its content. */
export async function remove(fs: FileSystem, parent: Descriptor, name: string): Promise<void> {
  if (await removeUnlessDirectory(fs, parent, name)) return
  const directory = await fs.openDirectory(parent, name)
  try {
    await refuseMounted(fs, directory)
    await empty(fs, directory)
  } finally {
    await fs.close(directory)
  }
  await fs.removeDirectory(parent, name)
}

/** Mostly a file: so it is tried as one, and only looked at where that fails (EISDIR; EPERM in POSIX's words). */
async function removeUnlessDirectory(fs: FileSystem, parent: Descriptor, name: string): Promise<boolean> {
  const failure = await failureOf(fs.removeFile(parent, name))
  const code = codeOf(failure)
  if (failure === undefined || code === 'ENOENT') return true
  if (code !== 'EISDIR' && code !== 'EPERM') throw failure
  if ((await fs.look(parent, name))?.type !== 'directory') throw failure
  return false
}

/** Removes all that is in a directory. */
async function empty(fs: FileSystem, root: Descriptor): Promise<void> {
  const directories = new OpenDirectories(fs, root)
  const found: string[] = []
  const pending = ['']
  try {
    for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
      const at = path
      found.push(at)
      await directories.use(at, async (directory) => {
        await makeWritable(fs, directory)
        for (const name of await fs.list(directory)) {
          if (!(await removeUnlessDirectory(fs, directory, name))) pending.push(inside(at, name))
        }
      })
    }
    // The deepest first.
    for (const path of found.slice(1).reverse()) {
      await directories.use(parentOf(path), (parent) => fs.removeDirectory(parent, nameOf(path)))
    }
  } finally {
    await directories.closeAll()
  }
}

/** Runs before the first removal, so that a directory with a mount in it stays whole. */
export async function refuseMounted(fs: FileSystem, directory: Descriptor): Promise<void> {
  const [mount] = await fs.mountsBelow(directory)
  if (mount === undefined) return
  throw Object.assign(new Error(`${mount} in it is a mount point of another program`), {
    code: 'EBUSY',
    syscall: 'rmdir',
  })
}

/** A directory of mode 0555 and its like has to be opened up by its owner before it can be emptied. */
export async function makeWritable(fs: FileSystem, directory: Descriptor): Promise<void> {
  if (fs.user.uid === 0) return
  const { mode, uid } = await fs.attributes(directory)
  if (uid === fs.user.uid && (mode & 0o700) !== 0o700) await fs.setMode(directory, mode | 0o700)
}

/** Failures that say something of this entry, not of the file system under it. */
const ofTheEntry = new Set(['ENOENT', 'EACCES', 'EPERM', 'EBUSY', 'EISDIR', 'ENOTDIR', 'ELOOP', 'ETXTBSY'])

/**
 * Removes the file or link at a relative path inside a directory; false where that cannot be done to this entry. Throws where
 * the file system fails.
 */
export async function removeInside(fs: FileSystem, directory: Descriptor, path: string): Promise<boolean> {
  const directories = new OpenDirectories(fs, directory)
  try {
    await directories.use(parentOf(path), (parent) => fs.removeFile(parent, nameOf(path)))
    return true
  } catch (error) {
    if (ofTheEntry.has(codeOf(error) ?? '')) return false
    throw error
  } finally {
    await directories.closeAll()
  }
}

/** What may fail without anything being lost: it is logged, and left to the next run. */
export async function attempt(
  log: Log,
  path: string,
  message: string,
  task: () => Promise<void> | undefined,
): Promise<void> {
  try {
    await task()
  } catch (error) {
    log.warn({ path, error: String(error) }, `${message}; the next run retries`)
  }
}
