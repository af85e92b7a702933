import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import * as native from '../../../native/index.js'
import { codeOf } from '../../errors.js'
import type {
  Attributes,
  Descriptor,
  Entry,
  ExtendedAttributes,
  FileSystem,
  Free,
  LockHolder,
  Immovable,
  Mount,
  Outcomes,
  Writers,
} from '../file-system.js'
import { accessAttribute, isKept, modeOf } from '../path/index.js'
import {
  lookAt,
  attributesOf,
  pathInside,
  call,
  callNow,
  isNameless,
  atPath,
  firstEntries,
  isLarge,
  listEntries,
  listNames,
  ReadBuffers,
} from './calls.js'
import * as calls from './calls.js'
import { lockHolder, userOfTree, writersInTree } from './tree-users.js'
import { immovable, freeOn, mountIdOf, mountOf } from './mount.js'
import { forgetMounts, mountPointsBelow } from '../../mountinfo.js'
import { namedEach, openOnMount, openNoSymlinks, otherMount, pathOf } from './open-path.js'
import { behindLeadingCommit, startWriteOutAll, syncAll } from './sync.js'

/** Most staged files that are open at a time. All of a large batch fit; every further barrier would cost flushes. */
const mostStagedFiles = 256
/** Most directories of one tree: another one costs an openat2(2) and no flush. Several targets of a batch are on their way at a time. */
const mostOpenDirectories = 32

/**
 * Most calls of one step that are under way at a time: more than libuv has threads (4), so that none of them waits for the next call. A call
 * costs a quarter then: 6 µs of processor time instead of 21, and one change of threads for six. Each may have a file open, in each target
 * of a batch.
 */
const mostCallsAtATime = 8

/** At most so many, and this share of RLIMIT_NOFILE (proc(5)): locks, hooks and all else of the process need descriptors too. @internal */
export function bound(most: number, share: number): number {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(limitsOfProcess())?.[1] ?? Infinity)
  return Math.max(1, Math.min(most, Math.floor(limit * share)))
}

/** Empty where /proc is not mounted: a program may import the library there, and the first call that needs /proc says so. */
function limitsOfProcess(): string {
  try {
    return fs.readFileSync('/proc/self/limits', 'latin1')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return ''
    throw error
  }
}

/*
 * The real file system. A name is always meant inside an open directory: by an *at call, or as /proc/self/fd/N/NAME, so that no other user
 * can swap a component of a path under root's hands. libuv opens everything O_CLOEXEC. No call waits for a disk on the event loop, unless
 * at-once.ts makes it.
 */

const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK, O_APPEND } = fs.constants

export class NodeFileSystem implements FileSystem {
  /** Asked each time: a program may give root up after it has imported the library. */
  readonly user = {
    get uid(): number {
      return process.geteuid?.() ?? 0
    },
    get gid(): number {
      return process.getegid?.() ?? 0
    },
  }
  readonly stagedFiles = bound(mostStagedFiles, 1 / 4)
  readonly openTargets = bound(Infinity, 1 / 64)
  readonly callsAtATime = bound(mostCallsAtATime, 1 / 64)
  readonly openDirectories = bound(mostOpenDirectories, 1 / 32)
  readonly free: (directory: Descriptor) => Promise<Free> = freeOn
  readonly #written = new Set<Descriptor>()
  readonly #buffers = new ReadBuffers()
  #boot: string | undefined

  openPath(path: string): Promise<Descriptor> {
    return atPath(() => path, openNoSymlinks(path))
  }

  openContent(path: string, follow: boolean, root?: Descriptor): Promise<Descriptor> {
    const flags = O_RDONLY | O_NONBLOCK
    if (root !== undefined) return atPath(() => pathOf(root, path), openNoSymlinks(path, flags, root))
    const named = (): string => path
    return call<Descriptor>(named, (done) => calls.open(path, follow ? flags : flags | O_NOFOLLOW, done))
  }

  openDirectory(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#openOnMount(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  openFile(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#openOnMount(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  }

  openAppend(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#open(parent, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK)
  }

  async createFile(parent: Descriptor, name: string): Promise<Descriptor> {
    const file = await this.#open(parent, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW)
    this.#written.add(file)
    return file
  }

  openLock(parent: Descriptor, name: string): Promise<Descriptor> {
    const open = (access: number) => this.#open(parent, name, access | O_NOFOLLOW | O_NONBLOCK)
    return open(O_RDWR).catch((error: unknown) => {
      // flock needs no right to write: a read-only mount may show what other programs write.
      if (codeOf(error) === 'EROFS') return open(O_RDONLY)
      if (codeOf(error) === 'ENOENT') return open(O_RDWR | O_CREAT)
      throw error
    })
  }

  createDirectory(parent: Descriptor, name: string, mode = 0o700): Promise<void> {
    return this.#named(parent, name, (path, done) => calls.mkdir(path, mode, done))
  }

  createLink(parent: Descriptor, name: string, text: string): Promise<void> {
    return this.#named(parent, name, (path, done) => fs.symlink(text, path, done))
  }

  readLink(parent: Descriptor, name: string): Promise<string> {
    return this.#named<string>(parent, name, (path, done) => fs.readlink(path, done))
  }

  readLinkPath(path: string): Promise<string> {
    const named = (): string => path
    return call<string>(named, (done) => fs.readlink(path, done))
  }

  async list(directory: Descriptor, most?: number): Promise<string[]> {
    if (isLarge(directory, most)) return (await this.entries(directory, most)).map(({ name }) => name)
    return listNames(() => pathOf(directory), `/proc/self/fd/${directory}`)
  }

  entries(directory: Descriptor, most?: number): Promise<Entry[]> {
    const list = isLarge(directory, most) ? firstEntries : listEntries
    return list(() => pathOf(directory), `/proc/self/fd/${directory}`, most)
  }

  look(parent: Descriptor, name: string): Promise<Attributes | undefined> {
    return lookAt(pathInside(`/proc/self/fd/${parent}`, name), () => pathOf(parent, name))
  }

  lookPath(path: string): Promise<Attributes | undefined> {
    return lookAt(path)
  }

  accessPath(path: string): Promise<void> {
    return call(
      () => path,
      (done) => fs.access(path, fs.constants.W_OK, done),
    )
  }

  attributes(descriptor: Descriptor): Promise<Attributes> {
    // At once: an open inode's attributes are in memory. A hop to a thread would cost thirty times the call.
    return callNow(
      () => pathOf(descriptor),
      () => attributesOf(descriptor),
    )
  }

  async write(file: Descriptor, bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      written += await this.#held<number>(file, (done) =>
        calls.write(file, bytes, written, bytes.length - written, null, done),
      )
    }
  }

  /** Through a new descriptor, which reports its own errors; a failed write-out reaches `to`, too. */
  copy(from: Descriptor, to: Descriptor): Promise<void> {
    const [source, target] = [`/proc/self/fd/${from}`, `/proc/self/fd/${to}`]
    return this.#held(to, (done) => fs.copyFile(source, target, fs.constants.COPYFILE_FICLONE, done))
  }

  async *read(file: Descriptor, known?: number): AsyncGenerator<Uint8Array, void, void> {
    const size = known ?? (await this.attributes(file)).size
    const buffer = this.#buffers.take(size)
    try {
      for (let position = 0; ;) {
        const bytesRead = await this.#held<number>(file, (done) =>
          calls.read(file, buffer, 0, buffer.length, position, done),
        )
        if (bytesRead === 0) return
        position += bytesRead
        yield buffer.subarray(0, bytesRead)
        // A short read that reaches the size is the end: one call less for each file.
        if (bytesRead < buffer.length && position >= size) return
      }
    } finally {
      this.#buffers.giveBack(buffer)
    }
  }

  setMode(descriptor: Descriptor, mode: number): Promise<void> {
    return this.#held(descriptor, (done) => calls.fchmod(descriptor, mode, done))
  }

  setOwner(descriptor: Descriptor, uid: number, gid: number): Promise<void> {
    return this.#held(descriptor, (done) => calls.fchown(descriptor, uid, gid, done))
  }

  setLinkOwner(parent: Descriptor, name: string, uid: number, gid: number): Promise<void> {
    return this.#named(parent, name, (path, done) => fs.lchown(path, uid, gid, done))
  }

  label(descriptor: Descriptor): Promise<Uint8Array | undefined> {
    return atPath(() => pathOf(descriptor), native.getAttribute(descriptor, labelAttribute))
  }

  setLabel(descriptor: Descriptor, label: Uint8Array): Promise<void> {
    return atPath(() => pathOf(descriptor), native.setAttribute(descriptor, labelAttribute, label))
  }

  extendedAttributes(descriptor: Descriptor): Promise<ExtendedAttributes | undefined> {
    return atPath(() => pathOf(descriptor), keptAttributes(descriptor))
  }

  setExtendedAttribute(descriptor: Descriptor, name: string, value: Uint8Array | undefined): Promise<void> {
    const setting =
      value === undefined ? native.removeAttribute(descriptor, name) : native.setAttribute(descriptor, name, value)
    return atPath(() => pathOf(descriptor), setting)
  }

  async startWriteOut(files: readonly Descriptor[]): Promise<Outcomes> {
    return namedEach(files, await startWriteOutAll(files))
  }

  async sync(descriptors: readonly Descriptor[]): Promise<Outcomes> {
    const outcomes = await behindLeadingCommit(descriptors, this.#written, () => syncAll(descriptors))
    forgetMounts()
    return namedEach(descriptors, outcomes)
  }

  rename(...[fromParent, from, toParent, to, mode]: Parameters<FileSystem['rename']>): Promise<void> {
    const renamed = native.rename(fromParent, from, toParent, to, mode)
    return atPath(() => pathOf(toParent, to), renamed).finally(forgetMounts)
  }

  removeFile(parent: Descriptor, name: string): Promise<void> {
    return this.#named(parent, name, (path, done) => calls.unlink(path, done))
  }

  removeDirectory(parent: Descriptor, name: string): Promise<void> {
    return this.#named(parent, name, (path, done) => calls.rmdir(path, done))
  }

  tryLock(lock: Descriptor): boolean {
    return native.tryLock(lock)
  }

  async lockHolder(lock: Descriptor): Promise<LockHolder | undefined> {
    const { inode } = await this.attributes(lock)
    return lockHolder(mountOf(lock).device, inode)
  }

  mount(descriptor: Descriptor): Promise<Mount> {
    return callNow(
      () => pathOf(descriptor),
      () => mountOf(descriptor),
    )
  }

  immovable(directory: Descriptor): Promise<Immovable | undefined> {
    return callNow(
      () => pathOf(directory),
      () => immovable(directory),
    )
  }

  mountsBelow(directory: Descriptor): Promise<string[]> {
    const path = pathOf(directory)
    const cut = path === '/' ? 1 : path.length + 1
    return callNow(
      () => path,
      () => mountPointsBelow(path).map((mountPoint) => mountPoint.slice(cut)),
    )
  }

  userOf(parent: Descriptor, name: string, onlySeen?: boolean): Promise<string | undefined> {
    return userOfTree(this, parent, name, onlySeen)
  }

  writersIn(parent: Descriptor, name: string): Promise<Writers> {
    return writersInTree(this, parent, name)
  }

  close(descriptor: Descriptor): Promise<void> {
    this.#written.delete(descriptor)
    const named = (): string => `descriptor ${descriptor}`
    // Closing the last descriptor of a nameless file frees its blocks, in a transaction that can wait for the disk. Any other close runs at
    // once: no local file system writes at it (network ones do; they cannot exchange).
    if (!native.isAtOnce() && isNameless(descriptor)) return call(named, (done) => fs.close(descriptor, done))
    return callNow(named, () => fs.closeSync(descriptor))
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- it is in the kernel's memory
  async bootId(): Promise<string> {
    this.#boot ??= fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
    return this.#boot
  }

  random(): string {
    // Node keeps random bytes for UUIDs: the ends of one are nothing else.
    const uuid = randomUUID()
    return `${uuid.slice(0, 4)}${uuid.slice(-12)}`
  }

  now(): number {
    return Date.now()
  }

  uptime(): number {
    return native.uptime()
  }

  #open(parent: Descriptor, name: string, flags: number): Promise<Descriptor> {
    return this.#named<Descriptor>(parent, name, (path, done) => calls.open(path, flags, 0o600, done))
  }

  /** Where the kernel does not compare the mounts, this does once the entry is open: that waits for no disk, as a stat of the name can. */
  async #openOnMount(parent: Descriptor, name: string, flags: number): Promise<Descriptor> {
    const found = await openOnMount(parent, name, flags & ~O_NOFOLLOW)
    const opened = found ?? (await this.#open(parent, name, flags))
    if (found !== undefined || mountIdOf(opened) === mountIdOf(parent)) return opened
    fs.closeSync(opened)
    throw otherMount(pathOf(parent, name))
  }

  /** A call on a name inside an open directory. */
  #named<T = void>(
    parent: Descriptor,
    name: string,
    start: (path: string | Buffer, done: native.Done<T>) => void,
  ): Promise<T> {
    return call<T>(
      () => pathOf(parent, name),
      (done) => start(pathInside(`/proc/self/fd/${parent}`, name), done),
    )
  }

  /** A call on something open. */
  #held<T = void>(descriptor: Descriptor, start: (done: native.Done<T>) => void): Promise<T> {
    return call<T>(() => pathOf(descriptor), start)
  }
}

/** The disks of this machine. */
export const system: FileSystem = /* @__PURE__ */ new NodeFileSystem()

const labelAttribute = 'security.selinux'

/** The mode of the entry at this path, whose st_mode the caller has: its group bits are an ACL's mask, where there is one. */
export async function modeAt(path: string, mode: number): Promise<number> {
  const list = await atPath(() => path, native.getAttributeAt(path, accessAttribute))
  return list === undefined ? mode : modeOf(mode, new Map([[accessAttribute, list]]))
}

/** Mostly there are none: one call finds that out. */
async function keptAttributes(descriptor: Descriptor): Promise<ExtendedAttributes | undefined> {
  const names = (await native.listAttributes(descriptor)).filter(isKept)
  if (names.length === 0) return undefined
  const found = new Map<string, Uint8Array>()
  for (const name of names) {
    const value = await native.getAttribute(descriptor, name)
    if (value) found.set(name, value)
  }
  return found
}
