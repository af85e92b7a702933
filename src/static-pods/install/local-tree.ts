import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { system, nodeFiles } from '../../durable/index.js'
import type { OwnAttributes } from '../../durable/path/index.js'
import type { FileSystem } from '../../durable/file-system.js'
import { codeOf, messageOf } from '../../errors.js'
import { InvalidInput } from '../failure.js'
import { type OpenedDirectory, openedIn } from '../../mounted-volume.js'
import { readRegularFile, UnfitFileError } from '../../regular-file.js'
import { largestFile } from '../node-files.js'

/** More than any pod needs; a mistaken `--resources /` ends here, not in memory. */
const mostFiles = 10_000
const mostBytes = 256 * 1024 * 1024

interface LocalFile {
  readonly content: Uint8Array
  /** Permission bits. */
  readonly mode: number
}

export interface LocalTree {
  /** By their paths in it. */
  readonly files: ReadonlyMap<string, LocalFile>
  readonly directories: readonly string[]
}

const isLink = 'is a symbolic link: replace it by the file that it leads to'

/** What a failed open means. @throws InvalidInput */
export function unreadable(path: string, error: unknown): never {
  const code = codeOf(error)
  if (code === 'ENOTDIR') refuseResource(path, 'is not a directory')
  if (code === 'ELOOP') refuseResource(path, isLink)
  refuseResource(path, `is not readable (${messageOf(error)})`)
}

/**
 * Reads the directory that `--resources` names; whatever its owner does meanwhile, through no link. Writes nothing.
 * @throws InvalidInput for an entry that cannot be copied: links, special files, too much
 */
export async function readLocalTree(top: OpenedDirectory, fs: FileSystem = system): Promise<LocalTree> {
  const files = new Map<string, LocalFile>()
  const directories: string[] = []
  let bytes = 0
  const walk = async (below: string): Promise<void> => {
    const entries = await openedIn(fs, top, below, unreadable, (directory) =>
      readdir(`/proc/self/fd/${directory}`, { withFileTypes: true, encoding: 'buffer' }),
    )
    for (const entry of entries) {
      const name = entry.name.toString('utf8')
      const path = below === '' ? name : `${below}/${name}`
      const place = join(top.path, path)
      if (!Buffer.from(name).equals(entry.name)) refuseResource(place, 'has a name that is not UTF-8')
      if (entry.isDirectory()) {
        directories.push(path)
        await walk(path)
        continue
      }
      if (entry.isSymbolicLink()) refuseResource(place, isLink)
      if (!entry.isFile()) refuseResource(place, 'is neither a file nor a directory')
      const file = await openedIn(fs, top, path, unreadable, async (opened) => {
        const { mode } = await fs.attributes(opened)
        const reading = readRegularFile(`/proc/self/fd/${opened}`, largestFile)
        const content = await reading.catch((error: unknown) => {
          throw error instanceof UnfitFileError ? new UnfitFileError(place, error.problem) : error
        })
        return { content, mode: mode & 0o777 }
      })
      bytes += file.content.length
      if (files.size >= mostFiles || bytes > mostBytes) {
        refuseResource(top.path, `holds more than ${mostFiles} files, or more than ${mostBytes / 1024 / 1024} MiB`)
      }
      files.set(path, file)
    }
  }
  await walk('')
  return { files, directories }
}

/**
 * Mode, owner and ACLs of each entry, and of the directory itself, whose path is ''.
 * @throws InvalidInput for an entry that has gone since the walk, or whose attributes this process may not read
 */
export async function readAttributes(
  { descriptor, path: top }: OpenedDirectory,
  { files, directories }: LocalTree,
  fs: FileSystem = system,
): Promise<Map<string, OwnAttributes>> {
  const found = new Map<string, OwnAttributes>()
  for (const path of ['', ...directories, ...files.keys()]) {
    const attributes = nodeFiles.attributesAt(fs, descriptor, path === '' ? '.' : path)
    found.set(path, await attributes.catch((error: unknown) => unreadable(join(top, path), error)))
  }
  return found
}

function refuseResource(path: string, what: string): never {
  throw new InvalidInput(`--resources: ${path} ${what}`)
}
