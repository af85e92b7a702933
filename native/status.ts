import { callNow, callOnThread, checkDescriptor, checkText, declareSystemCall, workingDirectory } from './libc.js'
import { SystemError } from './errno.js'

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
