import { unfit, type DurableWriteError } from '../errors.js'
import type { FileSystem, Mount } from '../file-system.js'
import { atPlace } from './resolve.js'

/* Whether writes at a path are known to survive a power cut. */

/** Whether a path is on a file system without proven durability. @throws DurableWriteError where the options refuse such a one */
export async function unprovenAt(
  fs: FileSystem,
  path: string,
  requireProven: boolean | undefined,
): Promise<{ unproven?: true }> {
  const mount = await atPlace(fs, path, ({ anchor }) => fs.mount(anchor))
  return isUnproven(path, mount, requireProven) ? { unproven: true } : {}
}

/** The same of a path for which this mount decides. */
export function isUnproven(path: string, { type, proven }: Mount, requireProven: boolean | undefined): boolean {
  if (!proven && requireProven === true) throw unprovenRefused(path, type, 'leave out --require-proven')
  return !proven
}

/** `otherwise`: what to do to have it done all the same. */
export function unprovenRefused(path: string, type: string, otherwise: string): DurableWriteError {
  return unfit(
    `${path} is on ${type}, where durability is not proven (proven: ext4 with a journal and inodes of 256 bytes, xfs and btrfs, with barriers on)`,
    { code: 'ENOTSUP', syscall: 'fstatfs', path, advice: `choose another file system, or ${otherwise}` },
  )
}
