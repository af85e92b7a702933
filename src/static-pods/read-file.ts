import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readRegularFile } from '../regular-file.js'
import { codeOf } from '../errors.js'

/** A pod is at most a few MiB of JSON; kubelet itself reads no more than 10 MiB of a manifest. */
const largestFile = 16 * 1024 * 1024

/**
 * A small regular file; undefined where there is none. `follow`: through a symbolic link in its last part.
 * @throws Error naming the path, for what is no regular file, too large, or cannot be read
 */
export async function readSmallFile(path: string, { follow = false } = {}): Promise<Uint8Array | undefined> {
  try {
    return await readRegularFile(path, largestFile, { follow })
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') throw new Error(`${path} is a symbolic link: name the file itself`)
    if (code !== undefined) throw new Error(`${path} cannot be read: ${code}`, { cause: error })
    throw error
  }
}

/** Regular files without a leading dot: what kubelet reads of a manifest directory. Empty where there is no directory. */
export async function listManifests(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    return entries
      .filter((entry) => !entry.name.startsWith('.') && (entry.isFile() || entry.isSymbolicLink()))
      .map((entry) => join(directory, entry.name))
      .sort()
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return []
    throw new Error(`${directory} cannot be read: ${code ?? String(error)}`, { cause: error })
  }
}
