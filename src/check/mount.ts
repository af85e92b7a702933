import { readFileSync, realpathSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import * as mountTable from '../mountinfo.js'
import type { MountDetails } from '../mountinfo.js'
import { forgottenVolume } from '../durable/errors.js'
import { mountReadWrite } from '../errors.js'
import { type CheckResult, fault, inBytes, ok, warn } from './findings.js'
import type { fitness } from '../durable/index.js'
import type { Free } from '../durable/file-system.js'

/** Where the target's parent is mounted, and whether this process sees mounts that come on it later. */
export function checkMount(mount: MountDetails, path: string, root = mountTable.rootMount()): CheckResult {
  const found = `${mount.source} on ${mount.mountPoint}`
  const inContainer = root?.type === 'overlay'
  const forgotten = forgottenVolume(path, undefined, root, mount)
  const isReadOnly = mount.options.includes('ro')
  if (forgotten !== undefined) {
    const layer = `${found}: the container's own layer, which is deleted with the container`
    return isReadOnly ? fault('mount', `${layer}, read-only`, forgotten) : warn('mount', layer, forgotten)
  }
  if (inContainer && !mount.receives) {
    return warn(
      'mount',
      `${found}; holdfast would not see a mount that the host makes on the target, and a publication would detach it`,
      'set mountPropagation: HostToContainer on the volumeMount',
    )
  }
  if (isReadOnly) {
    return fault('mount', `${found}, read-only`, mountReadWrite)
  }
  return ok('mount', found)
}

/** How to see that a file system keeps no time of an inode's birth. */
const withoutBirths: Readonly<Record<string, (mount: MountDetails) => string>> = {
  ext4: ({ source }) => `tune2fs -l ${source} | grep 'Inode size' says 128: make it anew with mkfs.ext4 -I 256`,
  xfs: ({ mountPoint }) => `xfs_info ${mountPoint} | grep crc says crc=0: make it anew with mkfs.xfs`,
}

/** Whether the guarantees about power cuts are proven on this file system. `hasBirth`: it keeps the times of its inodes' birth. */
export function checkFileSystem(
  mount: MountDetails,
  { proven, hasBirth }: { readonly proven: boolean; readonly hasBirth: boolean },
  requireProven: boolean,
): CheckResult {
  const { type, options } = mount
  if (proven) return ok('file system', `${type}${type === 'ext4' ? ' with its journal' : ''}: durability is proven`)
  const off = options.find((option) => option === 'nobarrier' || option === 'barrier=0')
  const remedy = off === undefined && !hasBirth ? withoutBirths[type]?.(mount) : undefined
  const why = type !== 'ext4' ? '' : off === undefined ? ' without a journal' : ` with ${off}`
  const doubt = remedy === undefined ? why : ' whose inodes have no time of birth'
  const found = `${type}${doubt}: durability is not proven; a power cut may undo or tear what was published`
  const other = 'put the target on ext4 with a journal, xfs or btrfs, with barriers on'
  const advice = remedy === undefined ? other : `${remedy}, or ${other}`
  return requireProven
    ? fault('file system', `${found}, and requireProven is set`, `${advice}; or remove requireProven`)
    : warn('file system', found, advice)
}

/** The disk under a mount, as sysfs shows it. */
interface BlockDevice {
  /** `sda`, `dm-0`, `loop3` */
  readonly name: string
  /** `write back` or `write through` (queue/write_cache); undefined where it does not say. */
  readonly cache: string | undefined
  /** Path of the file behind a loop device. */
  readonly backingFile: string | undefined
}

/** undefined where the kernel names no block device: overlay, tmpfs, network file systems, or a hidden sysfs. */
export function diskUnder({ device, source }: Pick<MountDetails, 'device' | 'source'>): BlockDevice | undefined {
  const own = device.startsWith('0:') ? undefined : realDirectory(`/sys/dev/block/${device}`)
  // btrfs has a device number that belongs to no disk, and names one of its disks as the source.
  const found = own ?? (source.startsWith('/dev/') ? classDirectory(source) : undefined)
  if (found === undefined) return undefined
  const disk = sysfsText(`${found}/partition`) === undefined ? found : dirname(found)
  return {
    name: basename(disk),
    cache: sysfsText(`${disk}/queue/write_cache`),
    backingFile: sysfsText(`${disk}/loop/backing_file`),
  }
}

function classDirectory(source: string): string | undefined {
  let node = source
  try {
    node = realpathSync(source)
  } catch {
    // A container that has no such device node: its name has to do.
  }
  return realDirectory(`/sys/class/block/${basename(node)}`)
}

function realDirectory(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

function sysfsText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Whether an fsync reaches the disk. undefined where the kernel tells nothing of it. */
export function checkFlushes(mount: MountDetails, disk: BlockDevice | undefined): CheckResult | undefined {
  const { type, options } = mount
  const off = options.find((option) => option === 'nobarrier' || option === 'barrier=0')
  if (off !== undefined) {
    return warn(
      'flushes',
      `the mount option ${off} turns them off: a power cut may lose or tear what was published`,
      `mount it without ${off}`,
    )
  }
  // Newer kernels show it as fsync=volatile (fs/overlayfs/params.c).
  if (type === 'overlay' && options.some((option) => option === 'volatile' || option === 'fsync=volatile')) {
    return warn(
      'flushes',
      'the overlay has the mount option volatile: the kernel never syncs it',
      'mount a directory of the host over it (hostPath)',
    )
  }
  if (disk === undefined) return undefined
  const { name, cache, backingFile } = disk
  if (backingFile !== undefined) {
    return warn(
      'flushes',
      `${name} is a loop device over ${backingFile}: its flushes are only as good as those of the file system that holds this file`,
      'use a disk or a partition for anything that matters',
    )
  }
  if (cache === undefined) return undefined
  return cache === 'write through'
    ? ok('flushes', `${name} reports no cache to flush (write through); a hypervisor may report this wrongly`)
    : ok('flushes', `the kernel sends them to ${name} (${cache} cache)`)
}

/** Below this many free bytes and inodes there is little room for anything. */
const lowBytes = 16 * 1024 * 1024
const lowInodes = 128

/** Old and new are on the disk together until the old content is removed; while a second publication waits, twice as much. */
export function checkSpace(free: Pick<Free, 'bytes' | 'inodes'>, used: fitness.Usage | undefined): CheckResult[] {
  return [
    amountResult('space', free.bytes, used?.bytes ?? 0, lowBytes, inBytes),
    free.inodes === undefined
      ? ok('inodes', 'this file system creates them as needed')
      : amountResult('inodes', free.inodes, used?.inodes ?? 0, lowInodes, String),
  ]
}

function amountResult(
  check: 'space' | 'inodes',
  free: number,
  used: number,
  low: number,
  show: (amount: number) => string,
): CheckResult {
  const found = used > 0 ? `${show(free)} free; the target takes ${show(used)}` : `${show(free)} free`
  const more = check === 'space' ? 'free up space on this file system' : 'remove files on this file system'
  if (free < used) return fault(check, `${found}, and the next publication needs as much again beside it`, more)
  if (free < 2 * used) return warn(check, `${found}; keep twice that free`, more)
  if (free < low) return warn(check, found, more)
  return ok(check, found)
}
