import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import * as mountTable from '../src/mountinfo.js'
import type { Device, DiskDescription } from './types.js'

/* The facts that a vendor asks for first, from mountinfo and sysfs: no call here waits for the disk. */

/** The file system that a directory is on, and the devices below it. @throws the errno of realpath(2) */
export function describeDisk(directory: string): DiskDescription {
  const mount = mountTable.mountAbove(realpathSync(directory))
  if (mount === undefined) throw new Error(`${directory} is on no mount of this process`)
  const { type, mountPoint, root, source, options, device } = mount
  const block = blockDevice(device, source)
  const uuid = block === undefined ? undefined : uuidOf(basename(block))
  return {
    fileSystem: type,
    mountPoint,
    root,
    source,
    options: [...new Set(options)],
    ...(uuid !== undefined && { uuid }),
    devices: block === undefined ? [] : disksBelow(block).map(describe),
  }
}

/** Whether this is the run's file system, in its place: an unmounted disk must not count as a disk that lost all. */
export function otherFileSystem(run: DiskDescription, now: DiskDescription): string | undefined {
  const known = run.uuid !== undefined && now.uuid !== undefined
  const say = (disk: DiskDescription) => {
    const what = known ? `UUID ${disk.uuid ?? ''}` : shapeOf(disk)
    return `${disk.fileSystem} at ${disk.mountPoint}${what && ` (${what})`}`
  }
  const differs =
    run.fileSystem !== now.fileSystem ||
    run.mountPoint !== now.mountPoint ||
    run.root !== now.root ||
    (known ? run.uuid !== now.uuid : shapeOf(run) !== shapeOf(now))
  return differs ? `the run is on ${say(run)}, and the directory is on ${say(now)}` : undefined
}

/** The facts that tell disks apart where udev has no UUID; their names change from one boot to the next. */
function shapeOf({ devices }: DiskDescription): string {
  return devices
    .map(({ model = 'unknown model', bytes = 0 }) => `${model}, ${bytes} bytes`)
    .sort()
    .join('; ')
}

/** In sysfs; btrfs has a number that belongs to no disk, and names its device as the mount's source. */
function blockDevice(number: string, source: string): string | undefined {
  const paths = [`/sys/dev/block/${number}`, `/sys/class/block/${basename(source)}`]
  const found = paths.find((path) => existsSync(path))
  return found === undefined ? undefined : realpathSync(found)
}

/** Whole disks: of a partition its disk, of device mapper and md the disks below them. */
function disksBelow(path: string, depth = 0): string[] {
  const whole = existsSync(join(path, 'partition')) ? dirname(path) : path
  const parts = entries(join(whole, 'slaves'))
  if (parts.length === 0 || depth > 8) return [whole]
  const below = parts.flatMap((name) => disksBelow(realpathSync(join(whole, 'slaves', name)), depth + 1))
  return [...new Set(below)]
}

function describe(path: string): Device {
  const text = (name: string): string | undefined => {
    try {
      return readFileSync(join(path, name), 'latin1').trim() || undefined
    } catch {
      return undefined
    }
  }
  const given = {
    model: text('device/model'),
    vendor: text('device/vendor'),
    firmware: text('device/firmware_rev') ?? text('device/rev'),
    writeCache: text('queue/write_cache'),
  }
  const sectors = Number(text('size'))
  return {
    name: basename(path),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    // In sectors of 512 bytes, for disks of every sector size.
    ...(sectors > 0 && { bytes: sectors * 512 }),
  }
}

/** The UUID that udev has; undefined without udev. */
function uuidOf(block: string): string | undefined {
  const directory = '/dev/disk/by-uuid'
  return entries(directory).find((name) => {
    try {
      return basename(realpathSync(join(directory, name))) === block
    } catch {
      return false
    }
  })
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** Tells machines apart, and says nothing of this one: machine-id(5) is not to be given away. */
export function machineDigest(): string {
  let id = ''
  try {
    id = readFileSync('/etc/machine-id', 'latin1').trim()
  } catch {
    // Not every image has one.
  }
  return createHash('sha256').update(`holdfast torture ${id}`).digest('hex').slice(0, 32)
}
