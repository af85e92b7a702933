import { checkDescriptor } from './arguments.js'
import { allocate, callNow, declareSystemCall, systemCallNumber } from './libc.js'
import { statxOf } from './mount-id.js'

const nameToHandle = declareSystemCall(['int', 'const char *', 'uint64_t', 'uint64_t', 'int'])
const nameToHandleNumber = systemCallNumber('name_to_handle_at')

const emptyPath = 0x1000
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
  const { address, view } = allocate(headSize + handleSize)
  const mount = allocate(4)
  view.setUint32(0, handleSize, true)
  const flags = emptyPath | handleFid
  const { result } = callNow(nameToHandle, nameToHandleNumber, checkDescriptor(fd), '', address, mount.address, flags)
  if (result !== 0 || view.getInt32(4, true) !== overlayHandle) return undefined
  return (view.getUint8(offsetOfFlags) & isUpper) === 0
}
