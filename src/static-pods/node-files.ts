/* What is on the node's disk, read through the FileSystem interface: a test's disk shows these commands what it holds. */
import { join } from 'node:path'
import { codeOf } from '../errors.js'
import { checkTarget, readWhole, resolve, resolveLinks, Scope } from '../durable/index.js'
import { DurableWriteError } from '../durable/errors.js'
import type { Entry, FileSystem } from '../durable/file-system.js'
import { largestFile } from './read-file.js'

/**
 * A small regular file; undefined where there is none. `follow`: through symbolic links in its last part.
 * @throws Error naming the path, for what is no regular file, too large, or cannot be read
 */
export async function readNodeFile(
  fs: FileSystem,
  path: string,
  { follow = false } = {},
): Promise<Uint8Array | undefined> {
  return reading(fs, path, async (scope) => {
    const { places, found } = await resolveLinks(scope, checkTarget(path), follow)
    const place = places.at(-1)
    if (place === undefined || found === undefined) return undefined
    if (found.type === 'symlink') {
      if (!follow) throw new Error(`${path} is a symbolic link: name the file itself`)
      throw new Error(`${path} cannot be read: ELOOP`)
    }
    if (found.type !== 'file') throw new Error(`${path} is not a regular file`)
    if (found.size > largestFile) throw new Error(`${path} is larger than ${largestFile} bytes`)
    return await readWhole(fs, await scope.keep(fs.openFile(place.anchor, place.name)))
  })
}

/** The text of a symbolic link; undefined where there is none, or something else. */
export async function readNodeLink(fs: FileSystem, path: string): Promise<string | undefined> {
  return reading(fs, path, async (scope) => {
    const { anchor, name, missing } = await resolve(scope, checkTarget(path))
    const found = missing.length === 0 ? await fs.look(anchor, name) : undefined
    return found?.type === 'symlink' ? fs.readLink(anchor, name) : undefined
  })
}

/** What is in a directory, by name. Empty where there is no such directory. */
export async function entriesOf(fs: FileSystem, directory: string): Promise<readonly Entry[]> {
  const entries = await reading(fs, directory, async (scope) => {
    const { anchor, missing } = await resolve(scope, join(checkTarget(directory), 'x'))
    return missing.length === 0 ? fs.entries(anchor) : undefined
  })
  return (entries ?? []).sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Files without a leading dot, and links: what kubelet reads of a manifest directory. Empty where there is no directory. */
export async function listManifests(fs: FileSystem, directory: string): Promise<string[]> {
  return (await entriesOf(fs, directory))
    .filter(({ name, type }) => !name.startsWith('.') && (type === 'file' || type === 'symlink'))
    .map(({ name }) => join(directory, name))
}

async function reading<T>(fs: FileSystem, path: string, read: (scope: Scope) => Promise<T>): Promise<T | undefined> {
  const scope = new Scope(fs)
  try {
    return await read(scope)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return undefined
    // A link that is not followed: the message says which, and why.
    if (code === 'ELOOP' && error instanceof DurableWriteError) throw error
    if (code !== undefined) throw new Error(`${path} cannot be read: ${code}`, { cause: error })
    throw error
  } finally {
    await scope.closeAll()
  }
}
