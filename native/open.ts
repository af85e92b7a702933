import { constants } from 'node:fs'
import { checkDirectory, checkInteger, checkText } from './arguments.js'
import { SystemError } from './errno.js'
import { callAsync, declareSystemCall, systemCallNumber } from './libc.js'

const openat2 = declareSystemCall(['int', 'const char *', 'const void *', 'size_t'])
const number = systemCallNumber('openat2')

const sizeOfOpenHow = 24
const closeOnExec = 0o2000000
const resolveNoMounts = 0x01
const resolveNoSymlinks = 0x04

/**
 * openat2(2) with RESOLVE_NO_SYMLINKS: ELOOP where any part of the path is a symbolic link. The descriptor is always O_CLOEXEC, which
 * openat2 does not set by itself: a descriptor that leaked into a child would keep a lock after our death. Throws SystemError; ENOSYS
 * before Linux 5.6, EPERM or ENOSYS under a seccomp profile that does not know it.
 */
export async function openNoSymlinks(directory: number, path: string, openFlags: number): Promise<number> {
  return open(directory, path, openFlags, resolveNoSymlinks)
}

/**
 * The same, and EXDEV where any part of the path is on another mount than the directory (RESOLVE_NO_XDEV): a bind mount of the same
 * file system is another mount, a btrfs subvolume is not. The directory must be a descriptor of it, not /proc/self/fd/N, which is
 * another mount itself.
 */
export async function openOnSameMount(directory: number, path: string, openFlags: number): Promise<number> {
  return open(directory, path, openFlags, resolveNoSymlinks | resolveNoMounts)
}

async function open(directory: number, path: string, openFlags: number, resolve: number): Promise<number> {
  const how = howToOpen(openFlags, resolve)
  const { result, errno } = await callAsync(
    openat2,
    number,
    checkDirectory(directory),
    checkText(path),
    how,
    sizeOfOpenHow,
  )
  if (result < 0) throw new SystemError('openat2', errno, path)
  return result
}

/** By flags and rules: a publication opens hundreds of files in one or two ways. */
const ways = new Map<string, Uint8Array>()

/** struct open_how (openat2(2)): the kernel only reads it. */
function howToOpen(openFlags: number, resolve: number): Uint8Array {
  const key = `${openFlags} ${resolve}`
  let way = ways.get(key)
  if (way === undefined) {
    const how = new DataView(new ArrayBuffer(sizeOfOpenHow))
    how.setBigUint64(0, BigInt(checkInteger('flags', openFlags, 0, 0x7fffffff) | closeOnExec), true)
    how.setBigUint64(16, BigInt(resolve), true)
    way = new Uint8Array(how.buffer)
    ways.set(key, way)
  }
  return way
}

/** O_DIRECTORY | O_RDONLY: a directory that can be listed and synced. */
export const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY
