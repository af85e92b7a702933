import { randomBytes } from 'node:crypto'
import { constants, promises as fsp } from 'node:fs'
import * as fs from 'node:fs'
import { promisify } from 'node:util'
import * as native from '../../native/index.js'
import { lookAt, toAttributes } from './attributes.js'
import { isSystemFailure, toError } from './errors.js'
import type { Attributes, Descriptor, FileSystem, Mount, Outcomes, RenameMode } from './file-system.js'
import { decodeName, pathInside } from './file-names.js'
import { behindLeadingCommit } from './lead-commit.js'
import { mountOf } from './mount.js'
import { openPathNoSymlinks } from './open-path.js'
import { startWriteOutAll, syncAll } from './node-sync.js'

/*
 * The real file system. A name is always meant inside an open directory: by an *at call, or as /proc/self/fd/N/NAME, so
 * that nobody can swap a component of a path under root's hands. libuv opens everything O_CLOEXEC. No call waits for a
 * disk on the event loop.
 */

const open = promisify(fs.open)
const writeDescriptor = promisify(fs.write)
const readDescriptor = promisify(fs.read)
const fchmod = promisify(fs.fchmod)
const fchown = promisify(fs.fchown)

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK, O_APPEND } =
  constants

/** Bytes read at a time: what stays in memory of a file that is compared. */
const pieceSize = 256 * 1024

const labelAttribute = 'security.selinux'

export class NodeFileSystem implements FileSystem {
  readonly user = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
  /** What a descriptor was opened as: for errors that a person can read. */
  readonly #paths = new Map<Descriptor, string>()
  readonly #written = new Set<Descriptor>()
  #boot: string | undefined

  async openPath(path: string): Promise<Descriptor> {
    return this.#opened(path, openPathNoSymlinks(path))
  }

  async openDirectory(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#open(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  async openFile(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#open(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  }

  async openAppend(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#open(parent, name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK)
  }

  async createFile(parent: Descriptor, name: string): Promise<Descriptor> {
    const file = await this.#open(parent, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW)
    this.#written.add(file)
    return file
  }

  async openLock(parent: Descriptor, name: string): Promise<Descriptor> {
    try {
      return await this.#open(parent, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
    } catch (error) {
      if (!isSystemFailure(error) || error.code !== 'ENOENT') throw error
    }
    return this.#open(parent, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
  }

  async createDirectory(parent: Descriptor, name: string, mode = 0o700): Promise<void> {
    await this.#named(parent, name, (path) => fsp.mkdir(path, mode))
  }

  async createLink(parent: Descriptor, name: string, text: string): Promise<void> {
    await this.#named(parent, name, (path) => fsp.symlink(text, path))
  }

  async readLink(parent: Descriptor, name: string): Promise<string> {
    return this.#named(parent, name, (path) => fsp.readlink(path))
  }

  async readLinkPath(path: string): Promise<string> {
    return fsp.readlink(path)
  }

  async list(directory: Descriptor): Promise<string[]> {
    const reading = fsp.readdir(`/proc/self/fd/${directory}`, { encoding: 'buffer' })
    return (await this.#told(this.#pathOf(directory), reading)).map(decodeName)
  }

  async look(parent: Descriptor, name: string): Promise<Attributes | undefined> {
    return this.#named(parent, name, lookAt)
  }

  async lookPath(path: string): Promise<Attributes | undefined> {
    return lookAt(path)
  }

  attributes(descriptor: Descriptor): Promise<Attributes> {
    // At once: an open inode's attributes are in memory. A hop to a thread would cost thirty times the call.
    return this.#toldNow(this.#pathOf(descriptor), () =>
      toAttributes(fs.fstatSync(descriptor, { bigint: true })),
    )
  }

  async write(file: Descriptor, bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await this.#told(
        this.#pathOf(file),
        writeDescriptor(file, bytes, done, bytes.length - done, null),
      )
      done += bytesWritten
    }
  }

  async *read(file: Descriptor): AsyncIterable<Uint8Array> {
    const { size } = await this.attributes(file)
    const buffer = Buffer.allocUnsafe(Math.min(pieceSize, Math.max(size + 1, 512)))
    for (let position = 0; ;) {
      const { bytesRead } = await this.#told(
        this.#pathOf(file),
        readDescriptor(file, buffer, 0, buffer.length, position),
      )
      if (bytesRead === 0) return
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
      // A short read that reaches the size is the end: one call less for each file.
      if (bytesRead < buffer.length && position >= size) return
    }
  }

  async setMode(descriptor: Descriptor, mode: number): Promise<void> {
    await this.#told(this.#pathOf(descriptor), fchmod(descriptor, mode))
  }

  async setOwner(descriptor: Descriptor, uid: number, gid: number): Promise<void> {
    await this.#told(this.#pathOf(descriptor), fchown(descriptor, uid, gid))
  }

  async setLinkOwner(parent: Descriptor, name: string, uid: number, gid: number): Promise<void> {
    await this.#named(parent, name, (path) => fsp.lchown(path, uid, gid))
  }

  async label(descriptor: Descriptor): Promise<Uint8Array | undefined> {
    return this.#told(this.#pathOf(descriptor), native.getAttribute(descriptor, labelAttribute))
  }

  async setLabel(descriptor: Descriptor, label: Uint8Array): Promise<void> {
    await this.#told(this.#pathOf(descriptor), native.setAttribute(descriptor, labelAttribute, label))
  }

  async startWriteOut(files: readonly Descriptor[]): Promise<Outcomes> {
    return this.#toldEach(files, await startWriteOutAll(files))
  }

  async sync(descriptors: readonly Descriptor[]): Promise<Outcomes> {
    const outcomes = await behindLeadingCommit(descriptors, this.#written, () => syncAll(descriptors))
    return this.#toldEach(descriptors, outcomes)
  }

  async rename(
    fromParent: Descriptor,
    from: string,
    toParent: Descriptor,
    to: string,
    mode: RenameMode,
  ): Promise<void> {
    await this.#told(`${this.#pathOf(toParent)}/${to}`, native.rename(fromParent, from, toParent, to, mode))
  }

  async removeFile(parent: Descriptor, name: string): Promise<void> {
    await this.#named(parent, name, (path) => fsp.unlink(path))
  }

  async removeDirectory(parent: Descriptor, name: string): Promise<void> {
    await this.#named(parent, name, (path) => fsp.rmdir(path))
  }

  tryLock(lock: Descriptor): boolean {
    return native.tryLock(lock)
  }

  mount(descriptor: Descriptor): Promise<Mount> {
    return this.#toldNow(this.#pathOf(descriptor), () => mountOf(descriptor))
  }

  close(descriptor: Descriptor): Promise<void> {
    this.#written.delete(descriptor)
    // At once: no local file system writes at a close (network ones do; they cannot exchange).
    const closing = this.#toldNow(this.#pathOf(descriptor), () => fs.closeSync(descriptor))
    this.#paths.delete(descriptor)
    return closing
  }

  async bootId(): Promise<string> {
    this.#boot ??= (await fsp.readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim()
    return this.#boot
  }

  random(): string {
    return randomBytes(8).toString('hex')
  }

  now(): number {
    return Date.now()
  }

  #pathOf(descriptor: Descriptor): string {
    return this.#paths.get(descriptor) ?? `descriptor ${descriptor}`
  }

  async #open(parent: Descriptor, name: string, flags: number): Promise<Descriptor> {
    return this.#opened(
      `${this.#pathOf(parent)}/${name}`.replace(/^\/\//, '/'),
      open(pathInside(`/proc/self/fd/${parent}`, name), flags, 0o600),
    )
  }

  async #opened(path: string, opening: Promise<Descriptor>): Promise<Descriptor> {
    const descriptor = await this.#told(path, opening)
    this.#paths.set(descriptor, path)
    return descriptor
  }

  async #named<T>(parent: Descriptor, name: string, call: (path: string | Buffer) => Promise<T>): Promise<T> {
    return this.#told(
      `${this.#pathOf(parent)}/${name}`.replace(/^\/\//, '/'),
      call(pathInside(`/proc/self/fd/${parent}`, name)),
    )
  }

  /** Lets an error name the path that a person knows, not /proc/self/fd. */
  async #told<T>(path: string, call: Promise<T>): Promise<T> {
    try {
      return await call
    } catch (error) {
      throw tell(path, error)
    }
  }

  #toldNow<T>(path: string, call: () => T): Promise<T> {
    try {
      return Promise.resolve(call())
    } catch (error) {
      return Promise.reject(tell(path, error))
    }
  }

  #toldEach(descriptors: readonly Descriptor[], outcomes: Outcomes): Outcomes {
    return outcomes.map((outcome, index) =>
      outcome === undefined ? undefined : tell(this.#pathOf(descriptors[index] ?? -1), outcome),
    )
  }
}

function tell(path: string, error: unknown): Error {
  if (!isSystemFailure(error)) return toError(error)
  // libuv has no name for EDQUOT, EUCLEAN and some more.
  const { errno } = error as NodeJS.ErrnoException
  if (error.code.startsWith('Unknown') && errno !== undefined) error.code = native.errnoName(Math.abs(errno))
  error.path = path
  error.message = `${error.syscall} ${path}: ${error.code}`
  return error
}
