import { type BigIntStats, constants, lstat } from 'node:fs'
import { isSystemError } from '../errors.js'
import type { Attributes, EntryType } from './file-system.js'
import { call } from './node-calls.js'

/** lstat(2); undefined where there is nothing. `name`: what a person calls it. */
export async function lookAt(
  path: string | Buffer,
  name: () => string = () => path.toString(),
): Promise<Attributes | undefined> {
  try {
    return toAttributes(await call<BigIntStats>(name, (done) => lstat(path, { bigint: true }, done)))
  } catch (error) {
    if (isSystemError(error) && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** What the seam tells of a stat(2). */
export function toAttributes(stats: BigIntStats): Attributes {
  const mode = Number(stats.mode)
  return {
    type: types.get(mode & constants.S_IFMT) ?? 'other',
    device: Number(stats.dev),
    inode: stats.ino,
    mode: mode & 0o7777,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    size: Number(stats.size),
  }
}

const types = new Map<number, EntryType>([
  [constants.S_IFREG, 'file'],
  [constants.S_IFDIR, 'directory'],
  [constants.S_IFLNK, 'symlink'],
])
