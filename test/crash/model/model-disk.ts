import {
  type Attributes,
  dropped,
  type EntryChange,
  type Inode,
  newInode,
  synced,
  withAttributes,
  withEntries,
} from './inode.js'

export const rootInode = 1
/** Where the numbers of the second file system begin: for a process both have the same ones, as two of one kind have. */
const secondDevice = 2 ** 20

/** The file system that an inode is on: 0 or 1. */
export function deviceOf(inode: number): 0 | 1 {
  return inode < secondDevice ? 0 : 1
}

/** The number that a process sees. */
export function numberOnDevice(inode: number): number {
  return inode % secondDevice
}

/** A mount over a name: a directory of the other file system, and its path there. In the kernel alone. */
export interface Mounted {
  readonly id: number
  readonly inode: number
  readonly root: string
}

/** A failure as a system call gives it. */
export class ModelError extends Error {
  constructor(
    readonly code: string,
    readonly syscall: string,
    readonly path: string,
  ) {
    super(`${syscall} ${path}: ${code}`)
  }
}

/**
 * A disk and the kernel above it, shared by all processes of one boot. Everything is in memory and undecided until it is
 * synced; power-cut.ts decides. `changed` is called after each change: each is an instant at which a crash can come.
 */
export class ModelDisk {
  /** The journal has been aborted: mutations fail, and an fsync answers 0 and does nothing. */
  aborted = false
  changed: ((what: string) => void) | undefined
  /** A process of this boot that uses every inode, in a few words. */
  user: string | undefined
  #inodes: Map<number, Inode>
  /** A fork has the same inodes: the next change of either makes a copy. */
  #isShared = false
  /** How many names lead to each inode, once somebody has asked; a change of names forgets it. */
  #names: ReadonlyMap<number, number> | undefined
  /** The next number on each file system. */
  readonly #next: [number, number]
  #random: number
  readonly #locks = new Map<number, object>()
  readonly #mounts = new Map<string, Mounted>()
  #lastMount = 2

  constructor(
    readonly boot = 1,
    inodes: Iterable<readonly [number, Inode]> = [
      [rootInode, durable(newInode(rootInode, 'directory', { mode: 0o755, uid: 0, gid: 0, label: '', extended: '' }))],
    ],
    next: readonly [number, number] = [rootInode + 1, secondDevice + rootInode],
    random = 0,
  ) {
    this.#inodes = new Map(inodes)
    this.#next = [...next]
    this.#random = random
  }

  /** The same disk and kernel, without the processes: what a process that is killed leaves. */
  fork(): ModelDisk {
    const copy = new ModelDisk(this.boot, [], this.#next, this.#random)
    copy.#inodes = this.#inodes
    copy.#names = this.#names
    copy.#isShared = this.#isShared = true
    copy.aborted = this.aborted
    copy.user = this.user
    copy.#lastMount = this.#lastMount
    for (const [name, mounted] of this.#mounts) copy.#mounts.set(name, mounted)
    return copy
  }

  /** The disk after a power cut, with these inodes on it. */
  rebooted(inodes: Iterable<readonly [number, Inode]>): ModelDisk {
    return new ModelDisk(this.boot + 1, inodes, this.#next, this.#random)
  }

  inode(number: number): Inode {
    const inode = this.#inodes.get(number)
    if (!inode) throw new Error(`the model has no inode ${number}`)
    return inode
  }

  #set(inode: Inode): void {
    if (this.#isShared) this.#inodes = new Map(this.#inodes)
    this.#isShared = false
    this.#inodes.set(inode.number, inode)
  }

  /** How many names lead to an inode. */
  namesOf(number: number): number {
    return (this.#names ??= namesIn(this.#inodes.values())).get(number) ?? 0
  }

  /** The inode that a name leads to. */
  child(directory: number, name: string): Inode | undefined {
    const number = this.mountedAt(directory, name)?.inode ?? this.inode(directory).now.entries.get(name)
    return number === undefined ? undefined : this.inode(number)
  }

  /** They are the kernel's: no inode says anything of them. */
  get hasMounts(): boolean {
    return this.#mounts.size > 0
  }

  mountedAt(directory: number, name: string): Mounted | undefined {
    return this.#mounts.size === 0 ? undefined : this.#mounts.get(`${directory}/${name}`)
  }

  /** A directory of the second file system over a name of the first: so that no path leads through two of them. */
  mountOver(directory: number, name: string, inode: number, root: string): void {
    this.#mounts.set(`${directory}/${name}`, { id: ++this.#lastMount, inode, root })
  }

  /** Whether something was mounted there. */
  unmount(directory: number, name: string): boolean {
    return this.#mounts.delete(`${directory}/${name}`)
  }

  /** Relative paths of the mounts below a directory. */
  mountsBelow(directory: number, prefix = ''): string[] {
    return [...this.inode(directory).now.entries].flatMap(([name, covered]) => {
      const number = this.mountedAt(directory, name)?.inode ?? covered
      if (deviceOf(number) !== deviceOf(directory)) return [prefix + name]
      return this.inode(number).type === 'directory' ? this.mountsBelow(number, `${prefix}${name}/`) : []
    })
  }

  create(directory: number, name: string, type: Inode['type'], attributes: Attributes, data = ''): Inode {
    this.writable('open', name)
    const inode = newInode(this.#next[deviceOf(directory)]++, type, attributes, data)
    this.#set(inode)
    this.link(directory, [[name, inode.number]], `create ${name}`)
    return inode
  }

  /** Mounts the second file system, durably, on a new name in the root; the inode of its root. */
  mountSecond(name: string, attributes: Attributes): Inode {
    const inode = durable(newInode(this.#next[1]++, 'directory', attributes))
    this.#set(inode)
    this.link(rootInode, [[name, inode.number]], `mount ${name}`)
    this.sync(rootInode)
    return inode
  }

  /** One change of a directory's names. */
  link(directory: number, names: EntryChange['names'], what: string): void {
    this.#set(withEntries(this.inode(directory), names))
    this.#names = undefined
    this.changed?.(what)
  }

  append(file: number, data: string): void {
    const inode = this.inode(file)
    this.#set({ ...inode, now: { ...inode.now, data: inode.now.data + data } })
    this.changed?.('write')
  }

  setMetadata(inode: number, change: Partial<Attributes>, what: string): void {
    this.#set(withAttributes(this.inode(inode), change))
    this.changed?.(what)
  }

  sync(inode: number): void {
    if (this.aborted) return
    this.#set(synced(this.inode(inode)))
    this.changed?.('sync')
  }

  /** The write-out of this inode has failed: its pages are clean now, and its next fsync tells, once. */
  drop(inode: number): void {
    const before = this.inode(inode)
    this.#set({ ...dropped(before), failures: before.failures + 1 })
  }

  /** Files that have something to write. */
  dirtyFiles(): Inode[] {
    return [...this.#inodes.values()].filter(({ type, now, disk, lost }) => type === 'file' && now !== disk && !lost)
  }

  /** Everything to stable storage, as sync(2). */
  syncAll(): void {
    for (const number of this.#inodes.keys()) this.sync(number)
  }

  writable(syscall: string, path: string): void {
    if (this.aborted) throw new ModelError('EROFS', syscall, path)
  }

  tryLock(inode: number, holder: object): boolean {
    const held = this.#locks.get(inode)
    if (held !== undefined && held !== holder) return false
    this.#locks.set(inode, holder)
    return true
  }

  unlock(inode: number, holder: object): void {
    if (this.#locks.get(inode) === holder) this.#locks.delete(inode)
  }

  random(): string {
    return (++this.#random).toString(16).padStart(16, '0')
  }
}

/** An inode of which all is on stable storage; the same one where it is that already. */
export function durable(inode: Inode): Inode {
  if (isDurable(inode)) return inode
  return { ...inode, disk: inode.now, past: [], changes: [], lost: false, failures: 0 }
}

function namesIn(inodes: Iterable<Inode>): Map<number, number> {
  const names = new Map<number, number>()
  for (const { now } of inodes) for (const named of now.entries.values()) names.set(named, (names.get(named) ?? 0) + 1)
  return names
}

function isDurable({ disk, now, past, changes, lost, failures }: Inode): boolean {
  return disk === now && past.length === 0 && changes.length === 0 && !lost && failures === 0
}
