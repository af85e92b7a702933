import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { InvalidInput } from './failure.js'
import { fileMode, type PlannedFile } from './object-files.js'
import { codeOf, readSmallFile } from './read-file.js'
import { substitute, type Substitutions } from './substitute.js'

/** More than any pod needs; a mistaken `--resources /` ends here, not in memory. */
const mostFiles = 10_000
const mostBytes = 256 * 1024 * 1024

/**
 * A local directory's files and directories, as a revision is to hold them, with the modes that library-go would give:
 * what is below `secrets/` counts as a Secret's, all else as a ConfigMap's.
 * @throws InvalidInput for what cannot be copied: links, special files, too much
 */
export async function readResources(
  root: string,
  words: Substitutions,
): Promise<{ files: Map<string, PlannedFile>; directories: string[] }> {
  const files = new Map<string, PlannedFile>()
  const directories: string[] = []
  let bytes = 0
  const top = await lstat(root).catch((error: unknown) => refuse(root, `cannot be read (${codeOf(error) ?? ''})`))
  if (!top.isDirectory()) refuse(root, 'is no directory')
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
      if (entry.isSymbolicLink()) refuse(join(root, path), 'is a symbolic link: put what it leads to in its place')
      if (!entry.isFile()) refuse(join(root, path), 'is neither a file nor a directory')
      const content = await readSmallFile(join(root, path))
      if (content === undefined) refuse(join(root, path), 'went away while it was read')
      bytes += content.length
      if (files.size >= mostFiles || bytes > mostBytes) {
        refuse(root, `holds more than ${mostFiles} files or ${mostBytes / 1024 / 1024} MiB`)
      }
      files.set(path, {
        content: substitute(content, words),
        mode: fileMode(path.startsWith('secrets/'), name),
      })
    }
  }
  await walk('')
  return { files, directories }
}

function refuse(path: string, what: string): never {
  throw new InvalidInput(`--resources: ${path} ${what}`)
}
