import { closeSync, constants, openSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { FileSystem } from './durable/file-system.js'

/** Attempts to read one version of a mounted volume; it changes once in minutes. */
const mostTries = 5

/** A directory that stays the same one whatever its owner does with its name. */
export interface OpenedDirectory {
  readonly descriptor: number
  /** For messages. */
  readonly path: string
}

/**
 * Reads a directory, or, of a volume as kubelet mounts it, with a `..data` link behind its names, what its readers see: the directory
 * behind that link, all of one version. Where that version is replaced and removed while `read` is at it, this hands the next one over.
 * `refuse` throws what a failed open is for the caller: ENOTDIR for a symbolic link, too. `isFinal`: errors after which there is no other
 * attempt.
 */
export async function readMounted<T>(
  path: string,
  read: (directory: OpenedDirectory) => Promise<T>,
  refuse: (path: string, error: unknown) => never,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  const opened = async (at: string, name: string, use: (directory: OpenedDirectory) => Promise<T>): Promise<T> => {
    const descriptor = openDirectory(at, (error) => refuse(name, error))
    try {
      return await use({ descriptor, path: name })
    } finally {
      closeSync(descriptor)
    }
  }
  return opened(path, path, async (root) => {
    const at = `/proc/self/fd/${root.descriptor}`
    for (let tries = 1; ; tries++) {
      const version = mountedVersion(at)
      try {
        return await (version === undefined ? read(root) : opened(`${at}/${version}`, join(path, version), read))
      } catch (error) {
        if (version === undefined || isFinal(error) || tries === mostTries) throw error
        // A volume's writer points the link elsewhere before it removes the old version: without a new link, the error stands.
        if (mountedVersion(at) === version) throw error
      }
    }
  })
}

/** What `use` makes of something below a directory while that is open, by its path in it; '' is the directory. No link is followed. */
export async function openedIn<T>(
  fs: Pick<FileSystem, 'openContent' | 'close'>,
  { descriptor, path }: OpenedDirectory,
  below: string,
  refuse: (path: string, error: unknown) => never,
  use: (opened: number) => T | Promise<T>,
): Promise<T> {
  const opening = fs.openContent(below === '' ? '.' : below, false, descriptor)
  const opened = await opening.catch((error: unknown) => refuse(join(path, below), error))
  try {
    return await use(opened)
  } finally {
    await fs.close(opened)
  }
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants

function openDirectory(path: string, refuse: (error: unknown) => never): number {
  try {
    return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch (error) {
    return refuse(error)
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
