import { relative } from 'node:path'
import type { Descriptor, FileSystem } from './file-system.js'
import type { StoredRecord } from './record.js'

/*
 * A symbolic link in the place of a directory that has moved (`movedFromAs: link`). The record of the removal that left it stays beside
 * it, and says where it leads: so it is known as this program's own by whoever publishes, moves or removes that path later.
 */

/** The text of a link in the directory `parent` that leads to `path`; both without symbolic links. Holds under another mount point, too. */
export function linkText(parent: string, path: string): string {
  return relative(parent, path)
}

/** Whether the symbolic link of this name is one that a removal has left. */
export async function isLeftLink(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  records: readonly Pick<StoredRecord, 'removing'>[],
): Promise<boolean> {
  const texts = records.flatMap(({ removing }) => removing?.link ?? [])
  return texts.length > 0 && texts.includes(await fs.readLink(parent, name))
}
