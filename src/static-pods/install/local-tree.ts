import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { NodeFileSystem, nodeFiles } from '../../durable/index.js'
import type { OwnAttributes } from '../../durable/path/index.js'
import type { FileSystem } from '../../durable/file-system.js'
import { codeOf, messageOf } from '../../errors.js'
import { InvalidInput } from '../failure.js'
import { readSmallFile } from '../read-file.js'

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

/**
 * Reads the directory that `--resources` names. Writes nothing.
 * @throws InvalidInput for an entry that cannot be copied: links, special files, too much
 */
export async function readLocalTree(root: string): Promise<LocalTree> {
  const files = new Map<string, LocalFile>()
  const directories: string[] = []
  let bytes = 0
  const top = await lstat(root).catch((error: unknown) => refuse(root, `is not readable (${codeOf(error) ?? ''})`))
  if (!top.isDirectory()) refuse(root, 'is not a directory')
  const walk = async (below: string): Promise<void> => {
    const entries = await readdir(join(root, below), { withFileTypes: true, encoding: 'buffer' })
    for (const entry of entries) {
      const name = entry.name.toString('utf8')
      const path = below === '' ? name : `${below}/${name}`
      if (!Buffer.from(name).equals(entry.name)) refuse(join(root, path), 'has a name that is not UTF-8')
      if (entry.isDirectory()) {
        directories.push(path)
        await walk(path)
        continue
      }
      if (entry.isSymbolicLink())
        refuse(join(root, path), 'is a symbolic link: replace it by the file that it leads to')
      if (!entry.isFile()) refuse(join(root, path), 'is neither a file nor a directory')
      const { mode } = await lstat(join(root, path))
      const content = await readSmallFile(join(root, path))
      if (content === undefined) refuse(join(root, path), 'was removed while holdfast read it')
      bytes += content.length
      if (files.size >= mostFiles || bytes > mostBytes) {
        refuse(root, `holds more than ${mostFiles} files, or more than ${mostBytes / 1024 / 1024} MiB`)
      }
      files.set(path, { content, mode: mode & 0o777 })
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
  root: string,
  { files, directories }: LocalTree,
  fs: FileSystem = new NodeFileSystem(),
): Promise<Map<string, OwnAttributes>> {
  const found = new Map<string, OwnAttributes>()
  for (const path of ['', ...directories, ...files.keys()]) {
    const place = join(root, path)
    const attributes = nodeFiles.attributesAt(fs, place)
    found.set(path, await attributes.catch((error: unknown) => refuse(place, `is not readable (${messageOf(error)})`)))
  }
  return found
}

function refuse(path: string, what: string): never {
  throw new InvalidInput(`--resources: ${path} ${what}`)
}
