import type { Log } from '../log.js'

const told = new Set<string>()

/** Warns of a target whose file system proves nothing, once for each target in the life of the process. */
export function warnUnproven(log: Log, path: string): void {
  if (told.has(path)) return
  told.add(path)
  log.warn(
    { path },
    `${path} is on a file system on which durability is not proven (proven: ext4 with its journal, xfs, btrfs); it is whole for its readers, but a power cut may undo or tear it`,
  )
}
