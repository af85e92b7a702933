/*
 * The FileSystem interface: every call that the algorithm makes, and nothing else. posix/file-system.ts is the real one; the crash
 * explorer's model disk is another. All failures are thrown as FileSystemError-like objects with `code`, `syscall` and a
 * `path` that a person can read.
 */

/** An open file or directory. */
export type Descriptor = number

export type EntryType = 'file' | 'directory' | 'symlink' | 'other'

/** What the algorithm asks of stat(2). */
export interface Attributes {
  readonly type: EntryType
  readonly device: number
  readonly inode: bigint
  /** When the inode was made, in nanoseconds since the epoch; 0 where that is not known, as by a look at a name. */
  readonly birth: bigint
  /** When content, owner, mode or attributes changed last (ctime), in nanoseconds since the epoch. */
  readonly changed: bigint
  /** Names that lead to it: 0 once it is removed. */
  readonly links: number
  /** Permission bits, 0 to 0o7777. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Bytes. */
  readonly size: number
  /** The bits that statx(2) calls STATX_ATTR_…; 0 where they are not known, as by a look at a name. */
  readonly flags: number
}

/** Extended attributes by name. */
export type ExtendedAttributes = ReadonlyMap<string, Uint8Array>

export interface Entry {
  readonly name: string
  readonly type: EntryType
}

/** The mount that a descriptor is on. */
export interface Mount {
  /** Differs between two mounts of one file system. */
  readonly id: number
  /** As in /proc/self/mountinfo: `ext4`, `nfs4`, … */
  readonly type: string
  /** `MAJOR:MINOR` of the file system; one for all subvolumes of a btrfs, which st_dev tells apart. */
  readonly device: string
  /** Which directory of the file system is mounted, and where. */
  readonly root: string
  readonly mountPoint: string
  /** Guarantees 2 and 3 are proven there: ext4 with its journal, xfs, btrfs, flushes not turned off, inodes with a time of birth. */
  readonly proven: boolean
  /** A reboot keeps the numbers of inodes. */
  readonly lasting: boolean
}

/** Free space of a file system. */
export interface Free {
  readonly bytes: number
  /** undefined: it makes inodes as they are needed. */
  readonly inodes: number | undefined
  /** Bytes that the smallest file takes. */
  readonly blockSize: number
}

/** Who can change the files of a directory without opening them again. */
export interface Writers {
  /** One of them, in a few words; undefined: none is seen. */
  readonly writer: string | undefined
  /** Why there may be others; undefined: all processes were looked at. */
  readonly unseen: string | undefined
}

export type RenameMode = 'replace' | 'noreplace' | 'exchange'

/** One failure or undefined for each descriptor, in order. */
export type Outcomes = (Error | undefined)[]

export type LockHolder = 'another process' | 'another call of this process'

/** By chattr(1), or in an overlay without redirect_dir. */
export type Immovable = 'immutable' | 'append-only' | 'of a lower layer'

export interface FileSystem {
  /** Opens a directory by an absolute path, no part of which is a symbolic link (ELOOP). */
  openPath(path: string): Promise<Descriptor>
  /**
   * Opens a path that the caller names, for reading; a fifo does not block. `follow`: also through a symbolic link (else ELOOP). `root`: an
   * open directory from which the path leads, no part of which is a symbolic link (ELOOP), whatever `follow` is.
   */
  openContent(path: string, follow: boolean, root?: Descriptor): Promise<Descriptor>
  /** Opens a directory that is not a symbolic link (ELOOP or ENOTDIR), on the mount of its parent (EXDEV). */
  openDirectory(parent: Descriptor, name: string): Promise<Descriptor>
  /** Opens a regular file for reading; a symbolic link is ELOOP, another mount EXDEV, and a fifo does not block. */
  openFile(parent: Descriptor, name: string): Promise<Descriptor>
  /** Opens a regular file for reading and appending. */
  openAppend(parent: Descriptor, name: string): Promise<Descriptor>
  /** Creates a file, mode 0600, for writing: O_EXCL and O_NOFOLLOW. */
  createFile(parent: Descriptor, name: string): Promise<Descriptor>
  /** Opens the lock file, creating it (0600) only where it is missing. */
  openLock(parent: Descriptor, name: string): Promise<Descriptor>
  /** Creates a directory, mode 0700 unless another is given; the umask applies. */
  createDirectory(parent: Descriptor, name: string, mode?: number): Promise<void>
  createLink(parent: Descriptor, name: string, text: string): Promise<void>
  readLink(parent: Descriptor, name: string): Promise<string>
  /** Text of the symbolic link at an absolute path. */
  readLinkPath(path: string): Promise<string>
  /**
   * Names in the directory, in no order; bytes that are no UTF-8 as file-names.ts has them. `most`: the caller needs no more of them, and a
   * large directory is read no further.
   */
  list(directory: Descriptor, most?: number): Promise<string[]>
  /** The same, with their types. */
  entries(directory: Descriptor, most?: number): Promise<Entry[]>
  /** lstat; undefined where there is nothing. */
  look(parent: Descriptor, name: string): Promise<Attributes | undefined>
  /** lstat of an absolute path; undefined where there is nothing. */
  lookPath(path: string): Promise<Attributes | undefined>
  /** access(2) with W_OK of an absolute path, symbolic links followed: fails where this user may not write there. */
  accessPath(path: string): Promise<void>
  attributes(descriptor: Descriptor): Promise<Attributes>
  /** Appends all of the bytes. */
  write(file: Descriptor, bytes: Uint8Array): Promise<void>
  /** Copies a file's content to a new, empty file: shares its blocks where the file system can. */
  copy(from: Descriptor, to: Descriptor): Promise<void>
  /** The file from its beginning, in pieces; each is valid until the next. `size`: its bytes, where attributes() has been asked. */
  read(file: Descriptor, size?: number): AsyncIterable<Uint8Array>
  setMode(descriptor: Descriptor, mode: number): Promise<void>
  setOwner(descriptor: Descriptor, uid: number, gid: number): Promise<void>
  /** Owner of a symbolic link itself. */
  setLinkOwner(parent: Descriptor, name: string, uid: number, gid: number): Promise<void>
  /** The SELinux label, undefined where there is none. */
  label(descriptor: Descriptor): Promise<Uint8Array | undefined>
  setLabel(descriptor: Descriptor, label: Uint8Array): Promise<void>
  /** Those that a publication keeps: ACLs and user attributes. undefined where there are none. */
  extendedAttributes(descriptor: Descriptor): Promise<ExtendedAttributes | undefined>
  /** undefined: removes the attribute; a missing one is no failure. */
  setExtendedAttribute(descriptor: Descriptor, name: string, value: Uint8Array | undefined): Promise<void>
  /** Starts the write-out of these files' pages. Each error counts as a failed fsync. */
  startWriteOut(files: readonly Descriptor[]): Promise<Outcomes>
  /** fsync of files and directories, all at once. */
  sync(descriptors: readonly Descriptor[]): Promise<Outcomes>
  rename(fromParent: Descriptor, from: string, toParent: Descriptor, to: string, mode: RenameMode): Promise<void>
  removeFile(parent: Descriptor, name: string): Promise<void>
  removeDirectory(parent: Descriptor, name: string): Promise<void>
  /** An exclusive lock for as long as the descriptor is open; false while another descriptor holds it. Never waits. */
  tryLock(lock: Descriptor): boolean
  /**
   * Who holds a lock: another process, or this one, maybe by another thread or another copy of this program. undefined: no process that
   * this one sees.
   */
  lockHolder(lock: Descriptor): Promise<LockHolder | undefined>
  mount(descriptor: Descriptor): Promise<Mount>
  /** Why the kernel renames this directory never; undefined: nothing is known to be in the way. */
  immovable(directory: Descriptor): Promise<Immovable | undefined>
  /** Relative paths of the mounts below a directory, as far as this mount namespace knows. */
  mountsBelow(directory: Descriptor): Promise<string[]>
  /**
   * Describes the processes that have something of this directory open, mapped or mounted, or work in it; a process that this one may not
   * inspect counts. undefined: certainly no other process; with `onlySeen`, none that this one may inspect.
   */
  userOf(parent: Descriptor, name: string, onlySeen?: boolean): Promise<string | undefined>
  /** The writers of a file of this directory, or of one below it, by descriptor or mapping: this process apart. */
  writersIn(parent: Descriptor, name: string): Promise<Writers>
  /** Free space on the file system of a directory, for this user. */
  free(directory: Descriptor): Promise<Free>
  close(descriptor: Descriptor): Promise<void>
  /** Differs after each start of the kernel. */
  bootId(): Promise<string>
  /** 16 random lower-case hex digits. */
  random(): string
  /** Milliseconds since the epoch, as the clock on the wall has it. */
  now(): number
  /** Milliseconds since the start of the kernel: setting the clock on the wall changes nothing in them. */
  uptime(): number
  /** How many staged files may be open at a time, and how many staged directories: a part of the descriptors that the process may have. */
  readonly stagedFiles: number
  /** How many targets of a batch may be on their way at a time: each holds its directory, those above it and its old and new content open. */
  readonly openTargets: number
  /** How many files of one tree may be read, written or looked at at a time. */
  readonly callsAtATime: number
  /** How many directories of one tree may be open at a time. */
  readonly openDirectories: number
  /** Effective user and group. */
  readonly user: { readonly uid: number; readonly gid: number }
}
