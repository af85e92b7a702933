import type { Pending } from './barrier.js'
import type { Attributes, Descriptor, FileSystem } from './file-system.js'

/** A directory that several publications of a batch may have to sync: once is enough for each key. */
export interface SharedDirectory {
  readonly descriptor: Descriptor
  /** Device and inode. */
  readonly key: string
}

export function shared(descriptor: Descriptor, { device, inode }: Attributes): SharedDirectory {
  return { descriptor, key: `${device}:${inode}` }
}

export async function sharedDirectory(fs: FileSystem, descriptor: Descriptor): Promise<SharedDirectory> {
  return shared(descriptor, await fs.attributes(descriptor))
}

/** What a barrier has to sync for all of these: each directory once, for all who need it. */
export function merged<Owner>(
  owners: readonly Owner[],
  directoriesOf: (owner: Owner) => readonly SharedDirectory[],
): Pending<Owner>[] {
  const byKey = new Map<string, { descriptor: Descriptor; type: 'directory'; owners: Owner[] }>()
  for (const owner of owners) {
    for (const { descriptor, key } of directoriesOf(owner)) {
      const known = byKey.get(key)
      if (known) known.owners.push(owner)
      else byKey.set(key, { descriptor, type: 'directory', owners: [owner] })
    }
  }
  return [...byKey.values()]
}
