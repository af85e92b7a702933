import { isUtf8 } from 'node:buffer'
import * as fs from 'node:fs'
import * as native from '../../../native/index.js'
import { codeOf, isSystemError, toError } from '../../errors.js'
import type { Attributes, EntryType, Entry } from '../file-system.js'

/*
 * node:fs's calls on libuv's threads, by their callbacks: `fs.promises` costs half as much again for each call, and a batch
 * makes a thousand. A failure names the path that a person knows, not /proc/self/fd.
 */

/** Starts a call. A failed call alone asks `path` for its path. */
export function call<T>(path: () => string, start: (done: native.Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    native.startInLane<T>(start, (error, value) => {
      if (error) reject(errorAt(path(), error))
      else resolve(value as T)
    })
  })
}

/** Makes a call at once: for calls that never wait for a disk. */
export function callNow<T>(path: () => string, start: () => T): Promise<T> {
  try {
    return Promise.resolve(start())
  } catch (error) {
    return Promise.reject(errorAt(path(), error))
  }
}

/** Names the path in the error of a call that answers with a promise. */
export async function atPath<T>(path: () => string, calling: Promise<T>): Promise<T> {
  try {
    return await calling
  } catch (error) {
    throw errorAt(path(), error)
  }
}

/** A failure with the path that a person knows. */
export function errorAt(path: string, error: unknown): Error {
  if (!isSystemError(error)) return toError(error)
  error.code = codeOf(error) ?? error.code
  error.path = path
  error.message = `${error.syscall} ${path}: ${error.code}`
  return error
}

/** lstat(2); undefined where there is nothing. `name`: what a person calls it. */
export async function lookAt(
  path: string | Buffer,
  name: () => string = () => path.toString(),
): Promise<Attributes | undefined> {
  try {
    return toAttributes(await call<fs.BigIntStats>(name, (done) => lstat(path, { bigint: true }, done)))
  } catch (error) {
    if (isSystemError(error) && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** What something open has: its birth and flags, too, where the kernel answers statx(2). */
export function attributesOf(descriptor: number): Attributes {
  const status = native.statusOf(descriptor)
  if (status === undefined) return toAttributes(fs.fstatSync(descriptor, { bigint: true }))
  const { mode } = status
  return { ...status, type: types.get(mode & fs.constants.S_IFMT) ?? 'other', mode: mode & 0o7777 }
}

/** stat(2) as the FileSystem interface has it. Without statx(2), libuv takes the time of the last change for that of the birth. */
function toAttributes(stats: fs.BigIntStats): Attributes {
  const mode = Number(stats.mode)
  return {
    type: types.get(mode & fs.constants.S_IFMT) ?? 'other',
    device: Number(stats.dev),
    inode: stats.ino,
    birth: 0n,
    changed: stats.ctimeNs,
    links: Number(stats.nlink),
    mode: mode & 0o7777,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    size: Number(stats.size),
    flags: 0,
  }
}

const types = new Map<number, EntryType>([
  [fs.constants.S_IFREG, 'file'],
  [fs.constants.S_IFDIR, 'directory'],
  [fs.constants.S_IFLNK, 'symlink'],
])

/** Names come as Latin-1, one character for each byte: most are ASCII, and need no buffer to be decoded from. */
const encoding = 'latin1'

/** The names in a directory. */
export async function listNames(path: () => string, directory: string): Promise<string[]> {
  const names = await call<string[]>(path, (done) => readdir(directory, { encoding }, done))
  return names.map(decoded)
}

/** The names in a directory with their types, as the directory itself tells, else by lstat(2). */
export async function listEntries(path: () => string, directory: string): Promise<Entry[]> {
  const entries = await call<fs.Dirent[]>(path, (done) => readdir(directory, { encoding, withFileTypes: true }, done))
  return entries.map((entry) => ({ name: decoded(entry.name), type: typeOf(entry) }))
}

/** Bytes of a directory below which one call that reads all of it is cheaper: some thousand names. */
const small = 64 * 1024

/** Whether a directory may hold far more than so many names. */
export function isLarge(directory: number, most: number | undefined): boolean {
  return most !== undefined && fs.fstatSync(directory).size > small
}

/** At least so many of the entries of a large directory, if it has them. */
export async function firstEntries(path: () => string, directory: string, most = Infinity): Promise<Entry[]> {
  const opened = await call<fs.Dir>(path, (done) => fs.opendir(directory, { encoding, bufferSize: pieces }, done))
  const found: Entry[] = []
  try {
    while (found.length < most) {
      const entry = await opened.read()
      if (entry === null) break
      found.push({ name: decoded(entry.name), type: typeOf(entry) })
    }
    return found
  } catch (error) {
    throw errorAt(path(), error)
  } finally {
    await opened.close()
  }
}

/** Entries that one call reads. */
const pieces = 512

function typeOf(entry: fs.Dirent): EntryType {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'symlink' : 'other'
}

const ascii = /^[ -~]*$/

function decoded(bytes: string): string {
  return ascii.test(bytes) ? bytes : decodeName(Buffer.from(bytes, 'latin1'))
}

/*
 * Linux's file names are bytes; JavaScript's strings are not. A name that is no UTF-8 would come back mangled, name nothing, and so hide
 * from all that reads the directory. Each byte that is not UTF-8 becomes a lone low surrogate, U+DC80 to U+DCFF, which no decoded text can
 * hold (PEP 383), and becomes the byte again in a system call.
 */

const escapeBase = 0xdc00
const loneEscape = /(?<![\uD800-\uDBFF])[\uDC80-\uDCFF]/

/** The bytes of a name as a string, from which the same bytes can be made again. @internal */
export function decodeName(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  // Not even its valid parts are decoded: it only has to be distinct, and found again.
  return Array.from(bytes, (byte) => String.fromCharCode(byte < 0x80 ? byte : escapeBase + byte)).join('')
}

/** Whether a name is text, and not bytes that only stand for themselves. */
export function isText(name: string): boolean {
  return !loneEscape.test(name)
}

/** A path inside a directory, for node:fs: a string, or bytes where the name holds some that are no text. */
export function pathInside(directory: string, name: string): string | Buffer {
  if (isText(name)) return `${directory}/${name}`
  // latin1 keeps the low eight bits of each code unit: the byte that was escaped.
  return Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name, 'latin1')])
}

/** Whether it has no name any more; false where fstat(2) fails. */
export function isNameless(descriptor: number): boolean {
  try {
    return fs.fstatSync(descriptor).nlink === 0
  } catch {
    return false
  }
}

/** Bytes read at a time: what stays in memory of a file that is compared. */
const pieceSize = 256 * 1024
/** Most files are smaller: their buffers are used again, since a batch reads hundreds. */
const smallSize = 16 * 1024
const keptBuffers = 8

/** Buffers to read files with. They may hold private keys, so they never leave the process, nor does other code share them. */
export class ReadBuffers {
  readonly #free: Buffer[] = []

  /** A buffer larger than a file of this size, so that one read finds its end, as far as a piece allows. */
  take(size: number): Buffer {
    if (size >= smallSize) return Buffer.allocUnsafeSlow(Math.min(pieceSize, size + 1))
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(smallSize)
  }

  giveBack(buffer: Buffer): void {
    if (buffer.length === smallSize && this.#free.length < keptBuffers) this.#free.push(buffer)
  }
}

/*
 * Calls of node:fs that the kernel mostly answers from memory: on one of libuv's threads, or at once where native.atOnce() starts them.
 * Calls that wait for a disk by their nature, as fsync(2) does, are not among them.
 */

/** Names of calls that Node has with a callback and with an answer. */
type Name = keyof typeof fs & (keyof typeof fs extends infer Key ? (Key extends `${infer Of}Sync` ? Of : never) : never)

/** The call on a thread, or at once: then its callback runs before it returns. */
function either<Of extends Name>(name: Of): (typeof fs)[Of] {
  const call = (...args: unknown[]): void => {
    if (!native.isAtOnce()) {
      const later = fs[name] as (...args: unknown[]) => void
      later(...args)
      return
    }
    const done = args.pop() as native.Done<unknown>
    let value: unknown
    try {
      const now = fs[`${name}Sync`] as (...args: unknown[]) => unknown
      value = now(...args)
    } catch (error) {
      done(error as Error)
      return
    }
    done(null, value)
  }
  return call as (typeof fs)[Of]
}

export const fchmod = either('fchmod')
export const fchown = either('fchown')
const lstat = either('lstat')
export const mkdir = either('mkdir')
export const open = either('open')
export const read = either('read')
const readdir = either('readdir')
export const rmdir = either('rmdir')
export const unlink = either('unlink')
export const write = either('write')
