import { promises as fsp, readFileSync } from 'node:fs'
import * as native from '../../../native/index.js'
import { clock } from '../../clock.js'
import type { Descriptor, Free, Mount, Immovable } from '../file-system.js'
import { mountDetails, type MountDetails } from '../../mountinfo.js'

/*
 * Which mount a descriptor is on, and whether durability is proven there. The mount's ID tells two mounts of one file system apart, as
 * st_dev does not, and finds btrfs subvolumes, whose st_dev is in no table. It comes from statx(2), on older kernels from
 * /proc/self/fdinfo/N (proc(5), fs/proc/fd.c). None of it waits for a disk, so it runs on the event loop.
 */
export function mountOf(descriptor: Descriptor): Mount {
  const told = native.mountStatus(descriptor)
  const id = told?.id ?? idFromProcess(descriptor)
  const kind = mountKind(id)
  return { id, ...kind, proven: kind.proven && told?.hasBirth !== false }
}

export function mountIdOf(descriptor: Descriptor): number {
  return native.mountId(descriptor) ?? idFromProcess(descriptor)
}

/** What a kernel before 5.8 has of it. @internal */
export function idFromProcess(descriptor: Descriptor): number {
  const information = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1')
  return Number(/^mnt_id:\s*(\d+)/m.exec(information)?.[1] ?? -1)
}

/** Mounts by ID, no entry older than `freshness`: a node can have thousands, and the kernel reuses IDs. */
const kinds = new Map<number, Omit<Mount, 'id'>>()
const freshness = 1000
/** The time of the oldest entry. */
let oldest = -Infinity

function mountKind(id: number): Omit<Mount, 'id'> {
  if (clock.now() - oldest > freshness) {
    kinds.clear()
    oldest = clock.now()
  }
  const known = kinds.get(id)
  if (known) return known
  const details = mountDetails(id)
  const { type = 'unknown', device = 'unknown', root = '/', mountPoint = '/' } = details ?? {}
  const proven = details !== undefined && isProven(details)
  const kind = { type, device, root, mountPoint, proven, lasting: ['ext4', 'xfs', 'btrfs'].includes(type) }
  kinds.set(id, kind)
  return kind
}

/** @internal */
export function isProven({ type, device, options }: Pick<MountDetails, 'type' | 'device' | 'options'>): boolean {
  if (options.some((option) => option === 'nobarrier' || option === 'barrier=0')) return false
  if (type === 'xfs' || type === 'btrfs') return true
  return type === 'ext4' && hasJournal(device)
}

/** ext4 shows the process of its journal in sysfs, `<none>` where it has no journal (fs/ext4/sysfs.c). */
function hasJournal(device: string): boolean {
  try {
    const name = /DEVNAME=(.+)/.exec(readFileSync(`/sys/dev/block/${device}/uevent`, 'latin1'))?.[1] ?? ''
    return /^\d+$/.test(readFileSync(`/sys/fs/ext4/${name}/journal_task`, 'latin1').trim())
  } catch {
    return false
  }
}

/** Free space there, for this user. */
export async function freeOn(directory: Descriptor): Promise<Free> {
  const { bsize, bavail, files, ffree } = await fsp.statfs(`/proc/self/fd/${directory}`)
  return { bytes: bavail * bsize, inodes: files === 0 ? undefined : ffree, blockSize: bsize }
}

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
