import { constants } from 'node:fs'
import {
  callAsync,
  callNow,
  callOnThread,
  type CallResult,
  checkDescriptor,
  checkDirectory,
  checkInteger,
  checkText,
  declare,
  declareSystemCall,
} from './libc.js'
import { errnoName, errnoOf, SystemError } from './errno.js'
import { isUtf8 } from 'node:buffer'

const openat2 = declareSystemCall('openat2', ['int', 'const char *', 'const void *', 'size_t'])

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
  const { result, errno } = await callAsync(openat2, checkDirectory(directory), checkText(path), how, sizeOfOpenHow)
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

const renameat2 = declareSystemCall('renameat2', ['int', 'const char *', 'int', 'const char *', 'unsigned int'])

const renameFlags = { replace: 0, noreplace: 1, exchange: 2 } as const

/**
 * renameat2(2). `replace`: as rename(2). `noreplace`: EEXIST if the new name exists. `exchange`: the two names change places in one step;
 * both must exist. Throws SystemError.
 */
export async function rename(
  fromDirectory: number,
  from: string,
  toDirectory: number,
  to: string,
  mode: keyof typeof renameFlags,
): Promise<void> {
  const { result, errno } = await callAsync(
    renameat2,
    checkDirectory(fromDirectory),
    checkText(from),
    checkDirectory(toDirectory),
    checkText(to),
    renameFlags[mode],
  )
  if (result !== 0) throw new SystemError('renameat2', errno, from)
}

const flock = declare('flock', 'int', ['int', 'int'])

const exclusive = 2
const nonBlocking = 4

/**
 * flock(2), LOCK_EX | LOCK_NB: true when the lock is ours until the descriptor is closed, false when another open file
 * holds it. Never waits. Throws SystemError.
 */
export function tryLock(fd: number): boolean {
  const { result, errno } = callNow(flock, checkDescriptor(fd), exclusive | nonBlocking)
  if (result === 0) return true
  if (errnoName(errno) === 'EAGAIN') return false
  throw new SystemError('flock', errno, undefined)
}

const syncFileRange = declare('sync_file_range', 'int', ['int', 'int64_t', 'int64_t', 'unsigned int'])

const waitBefore = 1
const write = 2
const waitAfter = 4

/**
 * sync_file_range(2) over the whole file: starts the write-out of its dirty pages (SYNC_FILE_RANGE_WRITE), and with
 * `wait` waits for it, on a thread. Neither metadata nor a device flush: a hint that lets later fsyncs share a commit, never a
 * barrier. An error consumes the file's write error, so that it counts as a failed fsync. Throws SystemError.
 */
export async function startWriteOut(fd: number, wait: boolean): Promise<void> {
  const [call, flags] = wait ? [callOnThread, waitBefore | write | waitAfter] : [callAsync, write]
  const { result, errno } = await call(syncFileRange, checkDescriptor(fd), 0, 0, flags)
  if (result !== 0) throw new SystemError('sync_file_range', errno, undefined)
}

const lgetxattr = declare('lgetxattr', 'long', ['const char *', 'const char *', 'void *', 'size_t'])
const fgetxattr = declare('fgetxattr', 'long', ['int', 'const char *', 'void *', 'size_t'])
const flistxattr = declare('flistxattr', 'long', ['int', 'void *', 'size_t'])
const fremovexattr = declare('fremovexattr', 'int', ['int', 'const char *'])
const fsetxattr = declare('fsetxattr', 'int', ['int', 'const char *', 'const void *', 'size_t', 'int'])

/** Most values are short. */
const usualValue = 256
/** The kernel's own bound of a value and of a list of names: XATTR_SIZE_MAX and XATTR_LIST_MAX (include/uapi/linux/limits.h). */
const maximumValue = 65_536

/** fgetxattr(2): undefined where the file or the file system has no such attribute. Throws SystemError. */
export async function getAttribute(fd: number, name: string): Promise<Uint8Array | undefined> {
  return readValue('fgetxattr', usualValue, (value, size) =>
    callAsync(fgetxattr, checkDescriptor(fd), checkText(name), value, size),
  )
}

/** lgetxattr(2): the same by a path, whose last part may be a symbolic link. Throws SystemError. */
export async function getAttributeAt(path: string, name: string): Promise<Uint8Array | undefined> {
  return readValue('lgetxattr', usualValue, (value, size) =>
    callAsync(lgetxattr, checkText(path), checkText(name), value, size),
  )
}

async function readValue(
  syscall: string,
  size: number,
  read: (value: Uint8Array, size: number) => Promise<CallResult>,
): Promise<Uint8Array | undefined> {
  const value = new Uint8Array(size)
  const { result, errno } = await read(value, size)
  if (result >= 0) return value.slice(0, result)
  const code = errnoName(errno)
  if (['ENODATA', 'ENOTSUP'].includes(code)) return undefined
  if (code === 'ERANGE' && size < maximumValue) return readValue(syscall, maximumValue, read)
  throw new SystemError(syscall, errno, undefined)
}

/** flistxattr(2): the names, which must be UTF-8 (EILSEQ), of all attributes that this process may see; none where the file system has no attributes. Throws SystemError. */
export async function listAttributes(fd: number): Promise<string[]> {
  return readNames(fd, usualValue)
}

async function readNames(fd: number, size: number): Promise<string[]> {
  const names = new Uint8Array(size)
  const { result, errno } = await callAsync(flistxattr, checkDescriptor(fd), names, size)
  if (result >= 0) {
    const bytes = Buffer.from(names.buffer, 0, result)
    // JavaScript could not name such an attribute in a later call.
    if (!isUtf8(bytes)) throw new SystemError('flistxattr', errnoOf('EILSEQ'), undefined)
    const text = bytes.toString('utf8')
    return text.split('\0').filter((name) => name !== '')
  }
  const code = errnoName(errno)
  if (code === 'ENOTSUP') return []
  if (code === 'ERANGE' && size < maximumValue) return readNames(fd, maximumValue)
  throw new SystemError('flistxattr', errno, undefined)
}

/** fsetxattr(2). Throws SystemError. */
export async function setAttribute(fd: number, name: string, value: Uint8Array): Promise<void> {
  const { result, errno } = await callAsync(fsetxattr, checkDescriptor(fd), checkText(name), value, value.length, 0)
  if (result !== 0) throw new SystemError('fsetxattr', errno, undefined)
}

/** fremovexattr(2); a missing attribute is no failure. Throws SystemError. */
export async function removeAttribute(fd: number, name: string): Promise<void> {
  const { result, errno } = await callAsync(fremovexattr, checkDescriptor(fd), checkText(name))
  if (result !== 0 && errnoName(errno) !== 'ENODATA') throw new SystemError('fremovexattr', errno, undefined)
}
