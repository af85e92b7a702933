import { unfit, type DurableWriteError } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import { atPlace } from './resolve.js'

/* Whether what is done at a path is known to survive a power cut. */

/** Whether a path is on a file system on which durability is not proven. @throws DurableWriteError where that is refused */
export async function unprovenAt(
  fs: FileSystem,
  path: string,
  requireProven: boolean | undefined,
): Promise<{ unproven?: true }> {
  const { type, proven } = await atPlace(fs, path, ({ anchor }) => fs.mount(anchor))
  if (proven) return {}
  if (requireProven !== true) return { unproven: true }
  throw unprovenRefused(path, type, 'leave out --require-proven')
}

/** `otherwise`: what to do to have it done all the same. */
export function unprovenRefused(path: string, type: string, otherwise: string): DurableWriteError {
  return unfit(
    `${path} is on ${type}, where durability is not proven (proven: ext4 with a journal, xfs and btrfs, with barriers on)`,
    { code: 'ENOTSUP', syscall: 'fstatfs', path, advice: `choose another file system, or ${otherwise}` },
  )
}
