/* The manifests and links of a node that static pods' commands read. */
import { join } from 'node:path'
import { nodeFiles } from '../durable/index.js'
import type { FileSystem } from '../durable/file-system.js'
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

/** Files without a leading dot, and links, as kubelet reads a manifest directory. Empty where there is no directory. */
export async function listManifests(fs: FileSystem, directory: string): Promise<string[]> {
  return (await nodeFiles.entriesOf(fs, directory))
    .filter(({ name, type }) => !name.startsWith('.') && (type === 'file' || type === 'symlink'))
    .map(({ name }) => join(directory, name))
}
