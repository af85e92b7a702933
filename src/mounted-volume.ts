import { readlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Attempts to read one version of a mounted volume; it changes once in minutes. */
const mostTries = 5

/**
 * Reads a directory, or, of a volume as kubelet mounts it, with a `..data` link behind its names, what its readers see: the directory
 * behind that link, all of one version. Where that version is replaced and removed while `read` is at it, this hands the next one over.
 * `isFinal`: errors after which there is no other attempt.
 */
export async function readMounted<T>(
  root: string,
  read: (directory: string) => Promise<T>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const version = mountedVersion(root)
    try {
      return await read(version === undefined ? root : join(root, version))
    } catch (error) {
      if (version === undefined || isFinal(error) || tries === mostTries) throw error
      // A volume's writer points the link elsewhere before it removes the old version: without a new link, the error stands.
      if (mountedVersion(root) === version) throw error
    }
  }
}

/** The directory beside it that a mounted volume's `..data` leads to; undefined where it is none. */
function mountedVersion(root: string): string | undefined {
  try {
    const target = readlinkSync(join(root, '..data'))
    return /^\.\.[^/]+$/.test(target) ? target : undefined
  } catch {
    return undefined
  }
}
