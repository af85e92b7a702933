import { unprovenRefused, type Disk } from '../durable/index.js'
import type { Log } from '../log.js'
import { warnUnproven } from '../unproven.js'

/**
 * Warns of each of these where durability is not proven. `directory`: what is looked at, which exists.
 * @throws DurableWriteError where `requireProven` refuses that
 */
export async function warnOfUnproven(
  places: readonly { readonly path: string; readonly directory?: string }[],
  { disk, log, requireProven = false }: { readonly disk: Disk; readonly log: Log; readonly requireProven?: boolean },
): Promise<{ unproven?: true }> {
  let isProven = true
  for (const { path, directory = path } of places) {
    const mount = await disk.inDirectory(directory, (opened) => disk.fs.mount(opened))
    if (mount === undefined || mount.proven) continue
    if (requireProven) throw unprovenRefused(path, mount.type, 'leave out --require-proven')
    isProven = false
    warnUnproven(log, path)
  }
  return isProven ? {} : { unproven: true }
}
