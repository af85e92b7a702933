import { readRegularFile } from '../regular-file.js'
import { codeOf } from '../errors.js'

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
