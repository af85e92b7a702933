import * as mountTable from '../mountinfo.js'
import type { MountDetails } from '../mountinfo.js'
import { Lane } from '../../native/index.js'

/** The mounts as they were read last, and when: by performance.now(). */
let known: readonly MountDetails[] | undefined
let readAt = -Infinity

/** Milliseconds for which they count: one change of an object asks several times, and a node has hundreds of mounts. */
const lasting = 1_000

/**
 * The mounts of this process, as they are or were a moment ago. Where it cannot read mountinfo, for want of a file descriptor or memory, it
 * answers the last ones: they only decide which operations wait for each other, and must not fail those. Throws only before the first
 * success.
 */
function currentMounts(): readonly MountDetails[] {
  if (known !== undefined && performance.now() - readAt < lasting) return known
  try {
    known = mountTable.mounts()
    readAt = performance.now()
  } catch (error) {
    if (known === undefined) throw error
  }
  return known
}

/**
 * The file system that a path is on: `MAJOR:MINOR` of the mount above it, by mountinfo's text alone. It does not stat the path, since a
 * file system that hangs would hang it, too. It follows no symbolic link, so the file system is that of the link.
 */
export function fileSystemOf(path: string, table: readonly MountDetails[] = currentMounts()): string {
  return mountTable.mountAbove(path, table)?.device ?? ''
}

/** The same as a person looks for it: `/mnt/usb (ext4 on /dev/sdb1)`. */
export function describeFileSystem(path: string): string {
  const mount = mountTable.mountAbove(path, currentMounts())
  return mount === undefined ? 'its file system' : `${mount.mountPoint} (${mount.type} on ${mount.source})`
}

/** A function for many paths at one time, with one read of mountinfo. */
export function fileSystemsNow(): (path: string) => string {
  const table = currentMounts()
  return (path) => fileSystemOf(path, table)
}

/** The lane of each file system. Each has one for as long as the process lives, so that all who work there share it. */
const lanes = new Map<string, Lane>()

/** Runs work on a file system with no more threads than a hanging one may keep. */
export function onFileSystem<T>(fileSystem: string, work: () => Promise<T>): Promise<T> {
  const lane = lanes.get(fileSystem) ?? new Lane()
  lanes.set(fileSystem, lane)
  return lane.run(work)
}

/** The same for the file system that a path is on. */
export async function beside<T>(path: string, work: () => Promise<T>): Promise<T> {
  return onFileSystem(fileSystemOf(path), work)
}
