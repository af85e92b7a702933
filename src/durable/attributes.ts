import { type BigIntStats, promises as fsp } from 'node:fs'
import { isSystemFailure } from './errors.js'
import type { Attributes } from './file-system.js'

/** lstat(2); undefined where there is nothing. */
export async function lookAt(path: string | Buffer): Promise<Attributes | undefined> {
  try {
    return toAttributes(await fsp.lstat(path, { bigint: true }))
  } catch (error) {
    if (isSystemFailure(error) && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** What the seam tells of a stat(2). */
export function toAttributes(stats: BigIntStats): Attributes {
  return {
    type: stats.isFile()
      ? 'file'
      : stats.isDirectory()
        ? 'directory'
        : stats.isSymbolicLink()
          ? 'symlink'
          : 'other',
    device: Number(stats.dev),
    inode: stats.ino,
    mode: Number(stats.mode & 0o7777n),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    size: Number(stats.size),
  }
}
