/** Calls of libc that Node lacks, for real file systems. */
import koffi from 'koffi'

const libc = koffi.load(null)
const lgetxattr = libc.func(
  'long lgetxattr(const char *path, const char *name, _Out_ uint8_t *value, size_t size)',
) as (path: string, name: string, value: Uint8Array, size: number) => number
const setxattr = libc.func(
  'int setxattr(const char *path, const char *name, const uint8_t *value, size_t size, int flags)',
) as (path: string, name: string, value: Uint8Array, size: number, flags: number) => number
const ioctl = libc.func('int ioctl(int descriptor, unsigned long request, uint32_t *argument)') as (
  descriptor: number,
  request: number,
  argument: [number],
) => number

/** _IOR('X', 125, __u32): XFS_IOC_GOINGDOWN, EXT4_IOC_SHUTDOWN. */
const shutdownRequest = 0x8004587d
/** The log in memory is lost, too (XFS_FSOP_GOING_FLAGS_NOLOGFLUSH). */
const withoutFlush = 2

const room = Buffer.alloc(4096)

/** One character for each byte; undefined where there is none. */
export function extendedAttribute(path: string, name: string): string | undefined {
  const length = lgetxattr(path, name, room, room.length)
  return length < 0 ? undefined : room.toString('latin1', 0, length)
}

/** The same the other way round. */
export function setExtendedAttribute(path: string, name: string, value: string): void {
  const bytes = Buffer.from(value, 'latin1')
  if (setxattr(path, name, bytes, bytes.length, 0) !== 0) throw new Error(`${path} does not take ${name}`)
}

/** Shuts the file system down on which this descriptor is open; false where it refuses. */
export function shutDown(descriptor: number): boolean {
  return ioctl(descriptor, shutdownRequest, [withoutFlush]) === 0
}
