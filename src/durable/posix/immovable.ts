import { readFileSync } from 'node:fs'
import * as native from '../../../native/index.js'
import type { Descriptor, Immovable } from '../file-system.js'
import { mountIdOf } from './mount.js'
import { mountDetails } from '../../mountinfo.js'

/* Why the kernel renames a directory never, where it renames others beside it. None of it waits for a disk. */

export function immovable(directory: Descriptor): Immovable | undefined {
  const flag = native.inodeFlag(directory)
  if (flag !== undefined) return flag
  const mount = mountDetails(mountIdOf(directory))
  if (mount?.type !== 'overlay' || redirects(mount.options)) return undefined
  return native.isOfLowerLayer(directory) === true ? 'of a lower layer' : undefined
}

/** Whether the overlay renames directories of its lower layers, too: mountinfo shows the option where it is not the module's default. */
function redirects(options: readonly string[]): boolean {
  const given = options.findLast((option) => option.startsWith('redirect_dir='))
  if (given !== undefined) return given === 'redirect_dir=on'
  try {
    return readFileSync('/sys/module/overlay/parameters/redirect_dir', 'latin1').startsWith('Y')
  } catch {
    return false
  }
}
