/* What another program wrote on the node's disk, read through the FileSystem interface: a test's disk shows it, too. */
import { join } from 'node:path'
import { codeOf } from '../../errors.js'
import { DurableWriteError, leftAsItWas, readError } from '../errors.js'
import type { Entry, FileSystem } from '../file-system.js'
import { checkTarget, inScope, readWhole, resolve, resolveLinks, type Scope } from '../path/index.js'

export { attributesAt, followTrusted, namesOf } from '../path/index.js'

export interface SmallFileOptions {
  /** Bytes above which a file is refused. */
  readonly largest: number
  /** Also through symbolic links in its last part; then passes over what is no such file, too. */
  readonly follow?: boolean | undefined
}

/**
 * A small regular file; undefined where there is none.
 * @throws DurableWriteError where it is unreadable, Error naming the path where it is no regular file, or too large
 */
export async function read(
  fs: FileSystem,
  path: string,
  { largest, follow = false }: SmallFileOptions,
): Promise<Uint8Array | undefined> {
  return reading(fs, path, async (scope) => {
    const { places, found } = await resolveLinks(scope, checkTarget(path), follow)
    const place = places.at(-1)
    if (place === undefined || found === undefined) return undefined
    if (follow && (found.type !== 'file' || found.size > largest)) return undefined
    if (found.type === 'symlink') throw new Error(`${path} is a symbolic link: name the file itself`)
    if (found.type !== 'file') throw new Error(`${path} is not a regular file`)
    if (found.size > largest) throw new Error(`${path} is larger than ${largest} bytes`)
    return await readWhole(fs, await scope.keep(fs.openFile(place.anchor, place.name)))
  })
}

/** The text of a symbolic link; undefined where there is none, or something else. @throws DurableWriteError */
export async function readLink(fs: FileSystem, path: string): Promise<string | undefined> {
  return reading(fs, path, async (scope) => {
    const { anchor, name, missing } = await resolve(scope, checkTarget(path))
    const found = missing.length === 0 ? await fs.look(anchor, name) : undefined
    return found?.type === 'symlink' ? fs.readLink(anchor, name) : undefined
  })
}

/** The entries of a directory, by name. Empty where there is no such directory. @throws DurableWriteError */
export async function entriesOf(fs: FileSystem, directory: string): Promise<readonly Entry[]> {
  const entries = await reading(fs, directory, async (scope) => {
    const { anchor, missing } = await resolve(scope, join(checkTarget(directory), 'x'))
    return missing.length === 0 ? fs.entries(anchor) : undefined
  })
  return (entries ?? []).sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function reading<T>(fs: FileSystem, path: string, use: (scope: Scope) => Promise<T>): Promise<T | undefined> {
  try {
    return await inScope(fs, use)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    // Of the path that the caller knows: a directory is resolved as the parent of a name.
    const { problem, code, syscall, reason, advice } = readError(path, error)
    const state = leftAsItWas(path)
    throw new DurableWriteError(problem, { code, syscall, path, reason, state, advice, cause: error })
  }
}
