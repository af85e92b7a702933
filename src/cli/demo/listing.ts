import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { table } from '../output/table.js'

/** A directory as `ls -lR` and `tree` would show it together: mode, links, inode, size, name. */
export async function listing(root: string): Promise<string> {
  const rows: string[][] = []
  const visit = async (path: string, name: string, depth: number): Promise<void> => {
    const status = await lstat(path)
    const mode = (status.mode & 0o7777).toString(8).padStart(4, '0')
    const size = status.isDirectory() ? '-' : `${status.size}`
    const suffix = status.isDirectory() ? '/' : ''
    rows.push([
      mode,
      String(status.nlink),
      String(status.ino),
      size.padStart(5),
      `${'  '.repeat(depth)}${name}${suffix}`,
    ])
    if (!status.isDirectory()) return
    for (const child of (await readdir(path)).sort()) await visit(join(path, child), child, depth + 1)
  }
  await visit(root, root, 0)
  return table([['MODE', 'LINKS', 'INODE', ' SIZE', 'NAME'], ...rows])
}
