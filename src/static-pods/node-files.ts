/* The manifests and links of a node that static pods' commands read, and the locks that they hold meanwhile. */
import { basename, dirname, join } from 'node:path'
import { nodeFiles, type Disk } from '../durable/index.js'
import type { HeldLock } from '../durable/path/index.js'
import type { FileSystem } from '../durable/file-system.js'
import { parseManifest, type Manifest } from './pod/manifest.js'
import { largestFile } from './read-file.js'

/**
 * A small regular file; undefined where there is none. `follow`: through symbolic links in its last part.
 * @throws Error naming the path, for a file that is not regular, is too large, or cannot be read
 */
export async function readNodeFile(
  fs: FileSystem,
  path: string,
  options: { readonly follow?: boolean } = {},
): Promise<Uint8Array | undefined> {
  return nodeFiles.read(fs, path, { ...options, largest: largestFile })
}

/** @throws InvalidInput for a file that is no pod, and as `readNodeFile` does */
export async function readManifest(fs: FileSystem, path: string): Promise<Manifest | undefined> {
  const bytes = await readNodeFile(fs, path)
  return bytes && parseManifest(bytes, path)
}

/** The mode and the owner of the file at a path, for its successor; undefined where no file is there. */
export async function ownershipAt(
  path: string,
  disk: Disk,
): Promise<{ readonly mode: number; readonly owner: { readonly uid: number; readonly gid: number } } | undefined> {
  const found = await disk.inDirectory(dirname(path), (parent) => disk.fs.look(parent, basename(path)))
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

/** Files without a leading dot, and links, as kubelet reads a manifest directory. Empty where there is no directory. */
export async function listManifests(fs: FileSystem, directory: string): Promise<string[]> {
  return (await nodeFiles.entriesOf(fs, directory))
    .filter(({ name, type }) => !name.startsWith('.') && (type === 'file' || type === 'symlink'))
    .map(({ name }) => join(directory, name))
}
