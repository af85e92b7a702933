import { relative } from 'node:path'
import type { Descriptor, FileSystem } from '../file-system.js'
import type { StoredRecord } from './record.js'

/*
 * A symbolic link in the place of a directory that has moved (`movedFromAs: link`). The record of the removal that left it stays beside
 * it, and says where it leads: so it is known as this program's own by whoever publishes, moves or removes that path later.
 */

/** The text of a link in the directory `parent` that leads to `path`; both without symbolic links. Holds under another mount point, too. */
export function linkText(parent: string, path: string): string {
  return relative(parent, path)
}

/** The texts of the links that removals have left, as these records say. */
export function leftLinks(records: readonly Pick<StoredRecord, 'removing'>[]): string[] {
  return records.flatMap(({ removing }) => removing?.link ?? [])
}

/** Whether what has this name is a symbolic link with one of these texts: an inode's number may be another one's by now. */
export async function isLeftLink(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  texts: readonly string[],
): Promise<boolean> {
  if (texts.length === 0 || (await fs.look(parent, name))?.type !== 'symlink') return false
  return texts.includes(await fs.readLink(parent, name))
}
