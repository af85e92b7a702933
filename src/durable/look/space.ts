import { nameOf, parentOf } from '../../relative-path.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { entriesBelow, OpenDirectories } from '../path/index.js'

/** What a directory takes: bytes in whole blocks, and inodes. */
export interface Usage {
  readonly bytes: number
  readonly inodes: number
}

/** Of files of these sizes, in bytes, and so many directories. */
export function usageBy(sizes: readonly number[], directories: number, blockSize: number): Usage {
  const blocks = sizes.reduce((sum, size) => sum + Math.ceil(size / blockSize), directories)
  return { bytes: blocks * blockSize, inodes: sizes.length + directories }
}

/** What a target holds now; the next publication needs as much again beside it. */
export async function usageOf(fs: FileSystem, target: Descriptor, blockSize: number): Promise<Usage> {
  const directories = new OpenDirectories(fs, target)
  const sizes: number[] = []
  let count = 1
  try {
    for await (const { path, type } of entriesBelow(directories)) {
      if (type === 'directory') count += 1
      else sizes.push((await directories.use(parentOf(path), (parent) => fs.look(parent, nameOf(path))))?.size ?? 0)
    }
    return usageBy(sizes, count, blockSize)
  } finally {
    await directories.closeAll()
  }
}
