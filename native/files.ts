import { constants } from 'node:fs'
import { errnoName, errnoOf, SystemError } from './errno.js'
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
  workingDirectory,
} from './libc.js'
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

const statx = declareSystemCall('statx', ['int', 'const char *', 'int', 'unsigned int', 'void *'])

/** AT_EMPTY_PATH: about the descriptor itself. */
const emptyPath = 0x1000
/** AT_STATX_DONT_SYNC: as the kernel has it, where a network file system would ask its server. */
const dontSync = 0x4000
const statxFlags = { known: emptyPath | dontSync, asked: emptyPath } as const
const wantMountId = 0x1000
const wantBirth = 0x800
/** Bytes of struct statx (linux/stat.h). */
const sizeOfStatx = 256
const offsetOfMountId = 144

const answer = new Uint8Array(sizeOfStatx)

/** statx(2) of a descriptor, valid until the next call; undefined where the call fails. Never waits for a disk. */
function statxOf(fd: number, want: number, how: keyof typeof statxFlags = 'known'): DataView | undefined {
  const { result } = callNow(statx, checkDescriptor(fd), '', statxFlags[how], want, answer)
  return result === 0 ? new DataView(answer.buffer) : undefined
}

/**
 * The ID of the mount that a descriptor is on, as /proc/self/mountinfo has it; undefined where the kernel does not report it (before
 * Linux 5.8, or under a seccomp profile without statx(2)). Never waits for a disk.
 */
export function mountId(fd: number): number | undefined {
  return mountStatus(fd)?.id
}

/** The same, and whether the file system keeps the time of this inode's birth. undefined where the call fails. */
export function mountStatus(fd: number): { readonly id: number | undefined; readonly hasBirth: boolean } | undefined {
  const view = statxOf(fd, wantMountId | wantBirth)
  if (view === undefined) return undefined
  const told = view.getUint32(0, true)
  const id = (told & wantMountId) === 0 ? undefined : Number(view.getBigUint64(offsetOfMountId, true))
  return { id, hasBirth: (told & wantBirth) !== 0 }
}

/** What names a file: numbers as stat(2) has them. */
export interface FileIdentity {
  readonly device: number
  readonly inode: bigint
}

/** STATX_BASIC_STATS (linux/stat.h). */
const wantBasic = 0x7ff

/** What statx(2) answers about something open. */
interface InodeStatus extends FileIdentity {
  /** Nanoseconds since the epoch; 0 where the file system does not keep it. */
  readonly birth: bigint
  /** Nanoseconds since the epoch. */
  readonly changed: bigint
  readonly links: number
  /** With the bits of the type. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly size: number
  /** The bits STATX_ATTR_…, as chattr(1) and others set them. */
  readonly flags: number
}

/** undefined where the call fails, as under a seccomp profile without statx(2). Waits for no disk: an open inode is in memory. */
export function statusOf(fd: number): InodeStatus | undefined {
  const view = statxOf(fd, wantBasic | wantBirth, 'asked')
  if (view === undefined) return undefined
  const number = (offset: number): number => view.getUint32(offset, true)
  const time = (offset: number): bigint => view.getBigInt64(offset, true) * 1_000_000_000n + BigInt(number(offset + 8))
  return {
    ...identityIn(view),
    birth: (number(0) & wantBirth) === 0 ? 0n : time(80),
    changed: time(96),
    links: number(16),
    mode: view.getUint16(28, true),
    uid: number(20),
    gid: number(24),
    size: Number(view.getBigUint64(40, true)),
    flags: number(8),
  }
}

const wantInode = 0x100

/**
 * statx(2) of a path, whose last part is followed where it is a link. A network file system may ask its server all the same, which takes as
 * long as that does. Throws SystemError.
 */
export async function identityAt(path: string): Promise<FileIdentity> {
  const answer = new Uint8Array(sizeOfStatx)
  const { result, errno } = await callOnThread(statx, workingDirectory, checkText(path), dontSync, wantInode, answer)
  if (result !== 0) throw new SystemError('statx', errno, path)
  return identityIn(new DataView(answer.buffer))
}

/** The device as glibc, musl and libuv put its two numbers together (makedev(3)). */
function identityIn(view: DataView): FileIdentity {
  const [major, minor] = [136, 140].map((offset) => BigInt(view.getUint32(offset, true))) as [bigint, bigint]
  const high = ((major & ~0xfffn) << 32n) | ((minor & ~0xffn) << 12n)
  return { device: Number(high | ((major & 0xfffn) << 8n) | (minor & 0xffn)), inode: view.getBigUint64(32, true) }
}

const nameToHandle = declareSystemCall('name_to_handle_at', ['int', 'const char *', 'void *', 'void *', 'int'])

/** Without it, an overlay gives a handle only with nfs_export (fcntl.h, Linux 6.5). */
const handleFid = 0x200
/** Of stx_attributes (linux/stat.h): what chattr(1) sets by +i and +a. */
const offsetOfAttributes = 8
const immutable = 0x10n
const appendOnly = 0x20n
/** Bytes of a handle at most (MAX_HANDLE_SZ), behind its head of two integers. */
const handleSize = 128
const headSize = 8
/** fs/overlayfs/overlayfs.h: the type of an overlay's handle, and its flag for an entry that no lower layer has. */
const overlayHandle = 0xf8
const offsetOfFlags = headSize + 6
const isUpper = 4

/** Whether the inode behind a descriptor has one of these flags. Never waits for a disk. */
export function inodeFlag(fd: number): 'immutable' | 'append-only' | undefined {
  const attributes = statxOf(fd, 0)?.getBigUint64(offsetOfAttributes, true) ?? 0n
  if ((attributes & immutable) !== 0n) return 'immutable'
  return (attributes & appendOnly) === 0n ? undefined : 'append-only'
}

/** Whether a lower layer of an overlay has a part in this entry; undefined where the kernel does not tell (before Linux 6.6). */
export function isOfLowerLayer(fd: number): boolean | undefined {
  const [handle, mount] = [new Uint8Array(headSize + handleSize), new Uint8Array(4)]
  const view = new DataView(handle.buffer)
  view.setUint32(0, handleSize, true)
  const { result } = callNow(nameToHandle, checkDescriptor(fd), '', handle, mount, emptyPath | handleFid)
  if (result !== 0 || view.getInt32(4, true) !== overlayHandle) return undefined
  return (view.getUint8(offsetOfFlags) & isUpper) === 0
}

const ioctl = declareSystemCall('ioctl', ['int', 'uint64_t', 'void *'])

/** linux/fs.h: the flags of chattr(1), and struct fsxattr. */
const getFlags = 0x8008_6601
const getExtended = 0x801c_581f
const sizeOfExtended = 28
const offsetOfProject = 12

/** What chattr(1) sets on something open; undefined where its file system has none of it. Waits for no disk. */
export function chattrOf(fd: number): { readonly flags: number; readonly project: number } | undefined {
  const [flags, extended] = [new Uint8Array(8), new Uint8Array(sizeOfExtended)]
  if (callNow(ioctl, checkDescriptor(fd), getFlags, flags).result !== 0) return undefined
  const hasProject = callNow(ioctl, fd, getExtended, extended).result === 0
  return {
    flags: new DataView(flags.buffer).getUint32(0, true),
    project: hasProject ? new DataView(extended.buffer).getUint32(offsetOfProject, true) : 0,
  }
}
