import { failureOf, toError } from '../../errors.js'
import { nameOf, parentOf } from '../../relative-path.js'
import type { Attributes, Descriptor, EntryType, FileSystem, Outcomes } from '../file-system.js'
import type { TargetNames } from './names.js'
import { entriesBelow, inTree, type OpenDirectories } from './open-directories.js'
import { remove } from './remove.js'
import { inScope, type Scope } from './scope.js'

/** A descriptor that a barrier must make durable, and whose content it is. */
export interface PendingSync<Owner> {
  readonly descriptor: Descriptor
  readonly type: 'file' | 'directory'
  readonly owners: readonly Owner[]
}

/**
 * Everything up to here on stable storage: the write-out of all files is started, that of the last is waited for, then all
 * files and directories are synced at once. Returns the first failure of each owner. An error of the write-out consumes the inode's
 * error, so that a later fsync would answer 0 for lost pages: it counts as a failed fsync, and nothing is tried again.
 */
export async function barrier<Owner>(
  fs: FileSystem,
  pending: readonly PendingSync<Owner>[],
): Promise<Map<Owner, Error>> {
  const failures = new Map<Owner, Error>()
  const files = pending.filter(({ type }) => type === 'file')
  await note(failures, files, (descriptors) => fs.startWriteOut(descriptors))
  const rest = pending.filter(({ owners }) => owners.some((owner) => !failures.has(owner)))
  await note(failures, rest, (descriptors) => fs.sync(descriptors))
  return failures
}

async function note<Owner>(
  failures: Map<Owner, Error>,
  pending: readonly PendingSync<Owner>[],
  call: (descriptors: Descriptor[]) => Promise<Outcomes>,
): Promise<void> {
  if (pending.length === 0) return
  let outcomes: Outcomes
  try {
    outcomes = await call(pending.map(({ descriptor }) => descriptor))
  } catch (error) {
    // The barrier itself failed, so each of its writes may be missing from the disk.
    outcomes = pending.map(() => toError(error))
  }
  pending.forEach(({ owners }, index) => {
    const failure = outcomes[index]
    if (failure === undefined) return
    for (const owner of owners) if (!failures.has(owner)) failures.set(owner, failure)
  })
}

/** fsync of all of these at once. @throws the first failure */
export async function fsyncAll(fs: FileSystem, descriptors: readonly Descriptor[]): Promise<void> {
  const failure = (await fs.sync(descriptors)).find((outcome) => outcome !== undefined)
  if (failure) throw failure
}

interface Below {
  readonly path: string
  readonly type: EntryType
}

/**
 * fsync of all files and directories below the open `root`, and of the descriptors `open`: in parallel, as far as the limit of descriptors
 * lets it. @throws the system's first failure
 */
export async function syncBelow(fs: FileSystem, root: Descriptor, open: readonly Descriptor[]): Promise<void> {
  await inTree(fs, root, async (directories) => {
    const all: Below[] = []
    for await (const entry of entriesBelow(directories)) {
      if (entry.type === 'file' || entry.type === 'directory') all.push(entry)
    }
    // The deepest first, since they are reached through the others.
    all.reverse()
    for (let from = 0; from === 0 || from < all.length; from += fs.stagedFiles) {
      const until = from + fs.stagedFiles
      await syncEach(directories, all.slice(from, until), until < all.length ? [] : open)
    }
  })
}

async function syncEach(
  directories: OpenDirectories,
  entries: readonly Below[],
  open: readonly Descriptor[],
): Promise<void> {
  const { fs } = directories
  await inScope(fs, async (scope) => {
    const opened: Descriptor[] = []
    for (const { path, type } of entries) {
      const openFile = (parent: Descriptor): Promise<Descriptor> => fs.openFile(parent, nameOf(path))
      const opening = type === 'directory' ? directories.take(path) : directories.use(parentOf(path), openFile)
      opened.push(await scope.keep(opening))
    }
    await fsyncAll(fs, [...opened, ...open])
  })
}

export interface StagedEntry<Owner> extends PendingSync<Owner> {
  readonly scope: Scope
  readonly later: boolean
}

/** Closes the synced entries before they are visible: the kernel runs no program that a process has open for writing (ETXTBSY). */
export async function closeSynced<Owner>(entries: readonly StagedEntry<Owner>[]): Promise<void> {
  for (const { scope, descriptor, later } of entries) if (!later) await scope.close(descriptor)
}

/**
 * What a batch has staged, open until it is synced: a file's descriptor that was closed and opened again can miss the error of a write-out
 * in between (errseq_t is sampled at open). At `fs.stagedFiles` files, or as many directories, those staged so far are synced and closed
 * before there are more: an early part of the first barrier, whose failures count as its own.
 */
export class StagedEntries<Owner> {
  #files: StagedEntry<Owner>[] = []
  #directories: StagedEntry<Owner>[] = []
  #syncing: Promise<void> | undefined
  readonly failures = new Map<Owner, Error>()

  constructor(readonly fs: FileSystem) {}

  async create(scope: Scope, parent: Descriptor, name: string): Promise<Descriptor> {
    await this.#room(() => this.#files.length)
    return scope.keep(this.fs.createFile(parent, name))
  }

  /** The file is written, and has its mode, owner and label. `later`: it is written to again after the barrier. */
  add(scope: Scope, descriptor: Descriptor, owner: Owner, later = false): void {
    this.#files.push({ descriptor, type: 'file', owners: [owner], scope, later })
  }

  /** The directory has its mode, owner and label, and all names that are to be in it. */
  async addDirectory(scope: Scope, descriptor: Descriptor, owner: Owner): Promise<void> {
    await this.#room(() => this.#directories.length)
    this.#directories.push({ descriptor, type: 'directory', owners: [owner], scope, later: false })
  }

  /** Hands over the entries that still need a sync. */
  take(): StagedEntry<Owner>[] {
    const entries = [...this.#files, ...this.#directories]
    this.#files = []
    this.#directories = []
    return entries
  }

  async #room(open: () => number): Promise<void> {
    // Those that are being synced are still open.
    if (this.#syncing === undefined && open() < this.fs.stagedFiles) return
    this.#syncing ??= this.#sync().finally(() => (this.#syncing = undefined))
    await this.#syncing
    // Those that were let in before may have taken the room meanwhile.
    await this.#room(open)
  }

  async #sync(): Promise<void> {
    const entries = this.take()
    for (const [owner, failure] of await barrier(this.fs, entries)) {
      if (!this.failures.has(owner)) this.failures.set(owner, failure)
    }
    for (const { scope, descriptor } of entries) await scope.close(descriptor)
  }
}

/** A directory that several publications of a batch may have to sync: once is enough for each key. */
export interface SharedDirectory {
  readonly descriptor: Descriptor
  /** Device and inode. */
  readonly key: string
}

export function shared(descriptor: Descriptor, { device, inode }: Attributes): SharedDirectory {
  return { descriptor, key: `${device}:${inode}` }
}

/** That of a publication which shares its barriers with none: nothing need be asked. */
export function alone(descriptor: Descriptor): SharedDirectory {
  return { descriptor, key: `${descriptor}` }
}

export async function sharedDirectory(fs: FileSystem, descriptor: Descriptor): Promise<SharedDirectory> {
  return shared(descriptor, await fs.attributes(descriptor))
}

/** What a barrier has to sync for all of these: each directory once, for all who need it. */
export function merged<Owner>(
  owners: readonly Owner[],
  directoriesOf: (owner: Owner) => readonly SharedDirectory[],
): PendingSync<Owner>[] {
  const byKey = new Map<string, { descriptor: Descriptor; type: 'directory'; owners: Owner[] }>()
  for (const owner of owners) {
    for (const { descriptor, key } of directoriesOf(owner)) {
      const known = byKey.get(key)
      if (known) known.owners.push(owner)
      else byKey.set(key, { descriptor, type: 'directory', owners: [owner] })
    }
  }
  return [...byKey.values()]
}

/**
 * Fails where the file system has shut down: after a flush that failed in another process's fsync, ours answers 0 for the lost data, and
 * only the next mutation fails (EROFS, EIO). The mutation must be one of a directory: ext4 reports the journal's error for a new or removed
 * entry, and swallows it for times and modes (ext4_dirty_inode in fs/ext4/inode.c). A file that a kill leaves behind has a staging name, so
 * the next recovery removes it.
 */
export async function probeJournal(fs: FileSystem, directory: Descriptor, names: TargetNames): Promise<void> {
  const name = names.staging(fs.random())
  await fs.close(await fs.createFile(directory, name))
  await fs.removeFile(directory, name)
}

/** The directory in which an entry changes. */
interface Area {
  readonly fs: FileSystem
  readonly parent: Descriptor
  readonly names: TargetNames
}

/**
 * Replaces an entry in one rename. `make` gets a staging name, makes the new entry under it and syncs that; this call answers what `make`
 * answers. The change is durable once `settle` has run.
 */
export async function replaceEntry<T>(
  { fs, parent, names }: Area,
  name: string,
  make: (staging: string) => Promise<T>,
): Promise<T> {
  const staging = names.staging(fs.random())
  try {
    const made = await make(staging)
    await fs.rename(parent, staging, parent, name, 'replace')
    return made
  } catch (error) {
    // A leftover has a staging name: the next recovery removes it.
    await failureOf(remove(fs, parent, staging))
    throw error
  }
}

/** The end of each change: fsync of all that is open, and then a change of the parent, which fails where the file system has shut down. */
export async function settle({ fs, parent, names }: Area, open: readonly Descriptor[]): Promise<void> {
  await fsyncAll(fs, open)
  await probeJournal(fs, parent, names)
}
