import { forgottenVolume } from './durable/errors.js'
import type { Log } from './log.js'

const warned = new WeakMap<Log, Set<string>>()

/** Warns of a target whose file system proves nothing, once for each target in one log. */
export function warnUnproven(log: Log, path: string): void {
  const paths = warned.get(log) ?? new Set()
  if (paths.has(path)) return
  warned.set(log, paths.add(path))
  const forgotten = forgottenVolume(path)
  log.warn(
    { path },
    `${path} is on a file system on which durability is not proven (proven: ext4 with its journal and inodes of 256 bytes, xfs, btrfs): readers see it intact, but a power cut may undo or tear it${forgotten === undefined ? '' : `; ${forgotten}`}`,
  )
}
