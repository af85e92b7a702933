import { nameOf, parentOf } from '../../relative-path.js'
import { codeOf, failureOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { inParallel } from '../../parallel.js'
import { inside, inTree, type OpenDirectories } from './open-directories.js'
import { withOpen } from './scope.js'

/**
 * Entries that one run removes of what others may have filled: more than an agent publishes by default. The rest goes with the next runs.
 */
export const mostRemoved = 20_480

/** How many of them a publication removes, while its neighbours wait; and the names that are in memory at a time. */
export const atOnce = 1_024

export interface RemovalLimits {
  /** Entries. */
  readonly most: number
  /** Aborted: the caller ends, and nothing goes any more. */
  readonly signal?: AbortSignal | undefined
}

/** Levels that are emptied in their place. */
const deepest = 32

/**
 * Removes the entry of this name: a file, a link (without following it), or a directory with all of its content.
 * @throws E2BIG where it holds more than `most` entries, once so many are gone; ECANCELED where the signal stops it
 */
export async function remove(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  limits: RemovalLimits = { most: Infinity },
): Promise<void> {
  if (await removeUnlessDirectory(fs, parent, name)) return
  await withOpen(fs, fs.openDirectory(parent, name), async (directory) => {
    await refuseMounted(fs, directory)
    await empty(fs, directory, limits)
  })
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

/**
 * Removes all that is in a directory, what is below first. A directory that is too deep goes up to the first level before: to come back to it,
 * all above it would have to be opened again, each time.
 */
async function empty(fs: FileSystem, root: Descriptor, { most, signal }: RemovalLimits): Promise<void> {
  const pending = [{ path: '', isListed: false }]
  let left = most
  const count = (): void => {
    left -= 1
    const rest = 'the rest goes with the next runs'
    if (signal?.aborted)
      throw Object.assign(new Error(`holdfast ends; ${rest}`), { code: 'ECANCELED', syscall: 'unlink' })
    if (left >= 0) return
    const message = `it holds more than ${most} entries, which are gone; ${rest}`
    throw Object.assign(new Error(message), { code: 'E2BIG', syscall: 'unlink' })
  }
  await inTree(fs, root, async (directories) => {
    for (let next = pending.at(-1); next !== undefined; next = pending.at(-1)) {
      const { path } = next
      if (!next.isListed) {
        const { below, isWhole } = await directories.use(path, (directory) => emptyOnce(fs, directory, count))
        next.isListed = isWhole
        for (const name of below) pending.push({ path: await lifted(directories, path, name), isListed: false })
        if (below.length > 0) continue
      }
      pending.pop()
      if (path === '') return
      count()
      await directories.use(parentOf(path), (parent) => fs.removeDirectory(parent, nameOf(path)))
    }
  })
}

/** Removes what is no directory. Answers the directories, and whether those are all: none where it is empty. */
async function emptyOnce(
  fs: FileSystem,
  directory: Descriptor,
  count: () => void,
): Promise<{ below: string[]; isWhole: boolean }> {
  await makeWritable(fs, directory)
  const below: string[] = []
  let names: string[]
  do {
    names = await fs.list(directory, atOnce)
    await inParallel(names, fs.callsAtATime, async (name) => {
      count()
      if (!(await removeUnlessDirectory(fs, directory, name))) below.push(name)
    })
  } while (names.length >= atOnce && below.length === 0)
  return { below, isWhole: names.length < atOnce }
}

/** Where a directory is to be emptied. */
async function lifted(directories: OpenDirectories, above: string, name: string): Promise<string> {
  const { fs } = directories
  const path = inside(above, name)
  if (path.split('/').length <= deepest) return path
  const higher = fs.random()
  // To leave one directory for another changes it.
  await directories.use(path, (directory) => makeWritable(fs, directory))
  await directories.use(above, (from) => directories.use('', (to) => fs.rename(from, name, to, higher, 'noreplace')))
  return higher
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
  try {
    await inTree(fs, directory, (directories) =>
      directories.use(parentOf(path), (parent) => fs.removeFile(parent, nameOf(path))),
    )
    return true
  } catch (error) {
    if (ofTheEntry.has(codeOf(error) ?? '')) return false
    throw error
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
