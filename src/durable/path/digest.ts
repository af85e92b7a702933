import { createHash, type Hash } from 'node:crypto'

/*
 * The digest of a publication: SHA-256 over its entries in byte order of their paths, the target itself first, as the
 * empty path. Each entry is one byte of type ('d' or 'f', 'l' for a symbolic link, 'o' for anything else), then the path
 * with its length before it, mode, uid, gid, and for files and links the content with its length before it. Lengths are
 * 64 bits, mode, uid and gid 32 bits, all little-endian. Printed as `sha256:` and 64 hex digits.
 */

export interface EntryHead {
  readonly type: 'file' | 'directory' | 'symlink' | 'other'
  readonly path: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

const typeBytes = { file: 'f', directory: 'd', symlink: 'l', other: 'o' } as const

/** 64 bits, in two halves: a BigInt would allocate an object, and this runs twice for each file. */
function writeLength(bytes: Buffer, length: number, at: number): number {
  const low = length % 2 ** 32
  return bytes.writeUInt32LE((length - low) / 2 ** 32, bytes.writeUInt32LE(low, at))
}

export class Digest {
  readonly #hash: Hash = createHash('sha256')

  /** Adds an entry; the content of a file or link follows through `content`, `size` bytes in all. */
  entry(head: EntryHead, size: number): void {
    const path = Buffer.from(head.path, 'utf8')
    const hasContent = head.type === 'file' || head.type === 'symlink'
    // In one piece: each update of a hash is a call out of JavaScript.
    const bytes = Buffer.allocUnsafe(1 + 8 + path.length + 12 + (hasContent ? 8 : 0))
    let at = bytes.write(typeBytes[head.type], 'latin1')
    at = writeLength(bytes, path.length, at)
    at += path.copy(bytes, at)
    for (const number of [head.mode, head.uid, head.gid]) at = bytes.writeUInt32LE(number, at)
    if (hasContent) writeLength(bytes, size, at)
    this.#hash.update(bytes)
  }

  content(bytes: Uint8Array): void {
    this.#hash.update(bytes)
  }

  text(): string {
    return `sha256:${this.#hash.digest('hex')}`
  }
}
