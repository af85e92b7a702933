import { lstatSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { FileSystem } from '../../durable/file-system.js'
import { isPublicationError } from '../../errors.js'
import { type OpenedDirectory, openedIn, readMounted } from '../../mounted-volume.js'
import { UsageError } from '../words/exit-codes.js'
import { type FoundFile, orRefuse, refuseUnreadable } from './read-file.js'

/** More than any directory of certificates or configuration holds; a mistaken `--from /` ends here. */
const mostFiles = 10_000

/** A directory's files, by relative path; none of their content has been read. */
export interface FoundTree {
  /** The directory, open until the content is published: its owner may put a link in the place of any name in it. */
  readonly root: number
  readonly files: Readonly<Record<string, FoundFile & { readonly path: string }>>
  /** Of all files. */
  readonly bytes: number
}

/**
 * Hands a directory's files to `publish`, or those of a mounted volume's version.
 * @throws UsageError for an unfit source: no directory, a symbolic link or special file in it, an empty directory, a name that
 *   is not UTF-8, too many files
 */
export async function withTree<T>(
  root: string,
  fs: FileSystem,
  signal: AbortSignal,
  publish: (tree: FoundTree) => Promise<T>,
): Promise<T> {
  if (root === '') throw new UsageError('--from is empty: name a directory')
  if (root === '-')
    throw new UsageError('--from - is standard input, which is no directory: "holdfast write FILE -" takes it')
  const found = orRefuse(root, () => lstatSync(root))
  if (!found.isDirectory()) {
    const what = found.isSymbolicLink() ? 'a symbolic link: name the directory that it leads to' : 'not a directory'
    throw new UsageError(`--from ${root} is ${what}`)
  }
  const read = async (directory: OpenedDirectory): Promise<T> => publish(await findFiles(directory, fs, signal))
  return readMounted(root, read, refuseUnreadable, isPublished)
}

function isPublished(error: unknown): boolean {
  return isPublicationError(error) && error.published
}

/** The answer of a look, or `otherwise` where it fails. */
function orElse<T>(otherwise: T, look: () => T): T {
  try {
    return look()
  } catch {
    return otherwise
  }
}

async function findFiles(top: OpenedDirectory, fs: FileSystem, signal: AbortSignal): Promise<FoundTree> {
  const files = new Map<string, FoundFile & { path: string }>()
  let bytes = 0
  const walk = async (directory: string): Promise<void> => {
    signal.throwIfAborted()
    const at = join(top.path, directory)
    const entries = await openedIn(fs, top, directory, refuseUnreadable, (opened) =>
      orRefuse(at, () => readdirSync(`/proc/self/fd/${opened}`, { withFileTypes: true, encoding: 'buffer' })),
    )
    if (entries.length === 0) {
      throw new UsageError(`${at} is empty: holdfast publishes files, and directories that hold files`)
    }
    for (const entry of entries) {
      const name = entry.name.toString('utf8')
      const path = directory === '' ? name : `${directory}/${name}`
      const place = join(top.path, path)
      if (!Buffer.from(name, 'utf8').equals(entry.name)) throw new UsageError(`${place}: its name is not UTF-8`)
      if (entry.isDirectory()) {
        await walk(path)
        continue
      }
      if (!entry.isFile())
        throw new UsageError(`${place} is ${describeEntry(entry)}: holdfast publishes regular files only`)
      const { type, mode, size } = await openedIn(fs, top, path, refuseUnreadable, (opened) => fs.attributes(opened))
      if (type !== 'file') throw new UsageError(`--from: ${place} is not a regular file`)
      bytes += size
      files.set(path, { mode, size, path: place })
      if (files.size > mostFiles) throw new UsageError(`--from ${top.path} holds more than ${mostFiles} files`)
    }
  }
  await walk('')
  return { root: top.descriptor, files: Object.fromEntries(files), bytes }
}

/**
 * Refuses a target inside its own source directory: the publication would change the source, which the next time would hold the target
 * and the entries kept beside it. Throws UsageError.
 */
export function refuseInside(root: string, target: string): void {
  const real = (path: string): string | undefined => orElse(undefined, () => realpathSync.native(path))
  const from = real(root)
  if (from === undefined) return
  for (let above = dirname(target); above !== '/'; above = dirname(above)) {
    // A publication makes missing parents, in the first directory that exists.
    const found = real(above)
    if (found === undefined) continue
    if (`${found}/`.startsWith(`${from}/`))
      throw new UsageError(`${target} is inside --from ${root}: name a target outside of that directory`)
    return
  }
}

interface EntryKind {
  isSymbolicLink(): boolean
  isFIFO(): boolean
  isSocket(): boolean
}

function describeEntry(entry: EntryKind): string {
  if (entry.isSymbolicLink()) return 'a symbolic link'
  if (entry.isFIFO()) return 'a pipe'
  if (entry.isSocket()) return 'a socket'
  return 'a device'
}
