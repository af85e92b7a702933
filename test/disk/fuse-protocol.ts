/**
 * The part of the FUSE wire protocol that a single regular file needs (Linux: include/uapi/linux/fuse.h, protocol 7.31).
 * All numbers on the wire are in the machine's own byte order; the machines that run this are little-endian.
 */

export const opcode = {
  forget: 2,
  getattr: 3,
  setattr: 4,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  fsync: 20,
  flush: 25,
  init: 26,
  access: 34,
  interrupt: 36,
  destroy: 38,
  batchForget: 42,
  fallocate: 43,
} as const

export const errno = { EIO: 5, ENOSYS: 38, EOPNOTSUPP: 95 } as const

/** Bytes of `struct fuse_in_header`; the operation's own arguments follow it. */
export const inHeader = 40
/** Bytes of `struct fuse_write_in`; the data follows it. */
export const writeIn = 40
/** Most bytes of one WRITE: 256 pages, the most that the kernel sends. */
const maxWrite = 1 << 20
/** A read of /dev/fuse must have room for the largest request. */
export const requestBytes = inHeader + writeIn + maxWrite + 4096

const outHeader = 16
const rootInode = 1n
const regularFile = 0o100600
/** Seconds for which the kernel may believe the attributes: they never change behind its back. */
const attributesValid = 3600n

// Flags of INIT: let direct I/O be asynchronous, allow writes above a page, and let us name the number of pages.
const asyncDirectIo = 1 << 15
const bigWrites = 1 << 5
const maxPages = 1 << 22

/** A reply without arguments: success (0) or a positive errno. */
export function reply(unique: bigint, failure = 0, body = 0): Buffer {
  const out = Buffer.alloc(outHeader + body)
  out.writeUInt32LE(out.length, 0)
  out.writeInt32LE(-failure, 4)
  out.writeBigUInt64LE(unique, 8)
  return out
}

/** The head of a reply whose `length` bytes of data are sent with it in one writev. */
export function readReplyHead(unique: bigint, length: number): Buffer {
  const out = reply(unique)
  out.writeUInt32LE(outHeader + length, 0)
  return out
}

export function initReply(unique: bigint): Buffer {
  const out = reply(unique, 0, 64)
  out.writeUInt32LE(7, outHeader)
  out.writeUInt32LE(31, outHeader + 4)
  out.writeUInt32LE(maxWrite, outHeader + 8) // max_readahead
  out.writeUInt32LE(asyncDirectIo | bigWrites | maxPages, outHeader + 12)
  out.writeUInt16LE(64, outHeader + 16) // max_background
  out.writeUInt16LE(48, outHeader + 18) // congestion_threshold
  out.writeUInt32LE(maxWrite, outHeader + 20)
  out.writeUInt32LE(1, outHeader + 24) // time_gran, ns
  out.writeUInt16LE(maxWrite / 4096, outHeader + 28)
  return out
}

/** GETATTR and SETATTR: one regular file of `size` bytes, of root, mode 0600. */
export function attributesReply(unique: bigint, size: number): Buffer {
  const out = reply(unique, 0, 104)
  out.writeBigUInt64LE(attributesValid, outHeader)
  const attributes = outHeader + 16
  out.writeBigUInt64LE(rootInode, attributes)
  out.writeBigUInt64LE(BigInt(size), attributes + 8)
  out.writeBigUInt64LE(BigInt(Math.ceil(size / 512)), attributes + 16)
  out.writeUInt32LE(regularFile, attributes + 60)
  out.writeUInt32LE(1, attributes + 64) // nlink
  out.writeUInt32LE(4096, attributes + 80) // blksize
  return out
}

/** OPEN: no handle of ours, no flags. */
export function openReply(unique: bigint): Buffer {
  return reply(unique, 0, 16)
}

export function writeReply(unique: bigint, length: number): Buffer {
  const out = reply(unique, 0, 8)
  out.writeUInt32LE(length, outHeader)
  return out
}

/** STATFS: the block size is what a loop device takes for its discard granularity. */
export function statfsReply(unique: bigint, size: number): Buffer {
  const out = reply(unique, 0, 80)
  out.writeBigUInt64LE(BigInt(Math.ceil(size / 4096)), outHeader)
  out.writeUInt32LE(4096, outHeader + 40) // bsize
  out.writeUInt32LE(255, outHeader + 44) // namelen
  out.writeUInt32LE(4096, outHeader + 48) // frsize
  return out
}
