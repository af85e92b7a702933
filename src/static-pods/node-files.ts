/* The manifests and links of a node that static pods' commands read, and the locks that they hold meanwhile. */
import { basename, dirname, join } from 'node:path'
import { nodeFiles, type DurableCalls } from '../durable/index.js'
import type { HeldLock } from '../durable/path/index.js'
import type { FileSystem } from '../durable/file-system.js'
import { StaticPodError } from './failure.js'
import { largestManifest, parseManifest, type Manifest } from './pod/manifest.js'
import { readRegularFile } from '../regular-file.js'
import { codeOf } from '../errors.js'

/**
 * A small regular file; undefined where there is none.
 * @throws Error naming the path, for a file that is not regular, is too large, or cannot be read
 */
export async function readNodeFile(fs: FileSystem, path: string): Promise<Uint8Array | undefined> {
  return nodeFiles.read(fs, path, { largest: largestFile })
}

/** @throws InvalidInput for a file that is no pod, and as `readNodeFile` does */
export async function readManifest(fs: FileSystem, path: string): Promise<Manifest | undefined> {
  const bytes = await readNodeFile(fs, path)
  return bytes && parseManifest(bytes, path)
}

/** The mode and the owner of the file at a path, for its successor; undefined where no file is there. */
export async function ownershipAt(
  path: string,
  durable: DurableCalls,
): Promise<{ readonly mode: number; readonly owner: { readonly uid: number; readonly gid: number } } | undefined> {
  const found = await durable.inDirectory(dirname(path), (parent) => durable.fs.look(parent, basename(path)))
  return found && { mode: found.mode, owner: { uid: found.uid, gid: found.gid } }
}

/** Works while it holds the lock; undefined: there is none to hold. */
export async function holding<T>(lock: Promise<HeldLock | undefined> | undefined, work: () => Promise<T>): Promise<T> {
  const held = await lock
  try {
    return await work()
  } finally {
    await held?.release()
  }
}

/*
 * What kubelet reads of a manifest directory (kubernetes: pkg/kubelet/config/file.go, extractFromDir): each file whose name has no leading dot, also
 * through links. It passes over everything else that stands there.
 */

/** Empty where there is no directory. What a link leads to, `readListed` tells. */
export async function listManifests(fs: FileSystem, directory: string): Promise<string[]> {
  return (await nodeFiles.entriesOf(fs, directory))
    .filter(({ name, type }) => !name.startsWith('.') && (type === 'file' || type === 'symlink'))
    .map(({ name }) => join(directory, name))
}

/** undefined for what kubelet passes over. @throws DurableWriteError where the file cannot be read */
export async function readListed(fs: FileSystem, path: string): Promise<Uint8Array | undefined> {
  return nodeFiles.read(fs, path, { follow: true, largest: largestManifest })
}

/** Refuses a lock that could not be taken, before any work. @throws StaticPodError */
export async function checkLockFile(path: string | undefined, { fs }: DurableCalls): Promise<void> {
  const found = path === undefined ? undefined : await fs.lookPath(path).catch(() => undefined)
  if (found === undefined) return
  const { type, uid } = found
  const isOthers = uid !== 0 && uid !== fs.user.uid
  if (type === 'file' && !isOthers) return
  const what = type === 'symlink' ? 'is a symbolic link' : 'is not a regular file'
  throw new StaticPodError(
    isOthers
      ? `the lock ${path} belongs to user ${uid}; nothing was changed; name a lock in a directory where only root may make files, such as /run/holdfast/locks`
      : `the lock ${path} ${what}; nothing was changed; name a regular file`,
  )
}

/** Bytes: more than kubelet reads of a manifest. */
export const largestFile = 16 * 1024 * 1024

/**
 * A small regular file; undefined where there is none. `follow`: through a symbolic link in its last part.
 * @throws Error naming the path, for a file that is not regular, is too large, or cannot be read
 */
export async function readSmallFile(path: string, { follow = false } = {}): Promise<Uint8Array | undefined> {
  try {
    return await readRegularFile(path, largestFile, { follow })
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') throw new Error(`${path} is a symbolic link: name the file itself`)
    if (code !== undefined) throw new Error(`could not read ${path}: ${code}`, { cause: error })
    throw error
  }
}
