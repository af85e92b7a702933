import { nameOf, parentOf } from '../../relative-path.js'
import type { Attributes, Descriptor, Entry, FileSystem, EntryType } from '../file-system.js'
import { type Identity, identityOf, isSame } from './place.js'
import { compareBytes } from './names.js'
import { withOpen } from './scope.js'

/** Levels from which the way down costs too much: on a shorter one, a directory that another program has replaced is noticed. */
const longWay = 16

interface Held {
  readonly opening: Promise<Descriptor>
  /** Calls that need it open. */
  users: number
}

/**
 * The directories below an open one, by their paths in it; '' is the open one. A tree can have more of them than a process may have
 * descriptors: at most `fs.openDirectories` stay open without a user. A closed one is opened again through those above it, each on the
 * mount of its parent; ESTALE where the path leads to another directory by then.
 */
export class OpenDirectories {
  readonly #root: Held
  /** In the order of their last use. */
  readonly #held = new Map<string, Held>()
  readonly #closed = new Map<string, Identity>()

  constructor(
    readonly fs: FileSystem,
    root: Descriptor,
  ) {
    this.#root = { opening: Promise.resolve(root), users: 1 }
  }

  /** Runs `task` with the directory open. */
  async use<T>(path: string, task: (directory: Descriptor) => Promise<T>): Promise<T> {
    const held = await this.#hold(path)
    try {
      return await task(await held.opening)
    } finally {
      held.users -= 1
    }
  }

  /** Runs `task` with a file of this path open. */
  async useFile<T>(path: string, task: (file: Descriptor) => Promise<T>): Promise<T> {
    const opening = this.use(parentOf(path), (parent) => this.fs.openFile(parent, nameOf(path)))
    return withOpen(this.fs, opening, task)
  }

  /** What has this path; undefined: nothing. */
  look(path: string): Promise<Attributes | undefined> {
    return this.use(parentOf(path), (parent) => this.fs.look(parent, nameOf(path)))
  }

  /** Opens the directory for the caller alone, which closes it. */
  async take(path: string): Promise<Descriptor> {
    const held = await this.#hold(path)
    // The next to be taken is mostly the one above.
    if (path.includes('/')) (await this.#hold(parentOf(path))).users -= 1
    this.#held.delete(path)
    return held.opening
  }

  async closeAll(): Promise<void> {
    const held = [...this.#held.values()]
    this.#held.clear()
    await Promise.allSettled(held.map(async ({ opening }) => this.fs.close(await opening)))
  }

  async #hold(path: string): Promise<Held> {
    const reached = await this.#fromBelow(path)
    if (reached) return reached
    const missing: string[] = []
    let open = path
    for (; open !== '' && !this.#held.has(open); open = parentOf(open)) missing.push(open)
    let held = this.#pin(open) ?? this.#root
    for (let next = missing.pop(); next !== undefined; next = missing.pop()) {
      const above = held
      held = this.#pin(next) ?? this.#open(next, above)
      try {
        await held.opening
      } catch (error) {
        if (this.#held.get(next) === held) this.#held.delete(next)
        throw error
      } finally {
        above.users -= 1
      }
      await this.#makeRoom()
    }
    return held
  }

  /**
   * Opens a closed directory by `..` of an open one in it: who works from the deepest up would else open all that are above, again and
   * again. undefined: only the way down leads there.
   */
  async #fromBelow(path: string): Promise<Held | undefined> {
    if (!this.#closed.has(path) || this.#held.has(path) || this.#held.has(parentOf(path))) return undefined
    if (path.split('/').length < longWay) return undefined
    const below = [...this.#held].find(([one]) => parentOf(one) === path)?.[1]
    if (below === undefined) return undefined
    below.users += 1
    const opened = await this.#openIn(below, path, '..').catch(() => undefined)
    below.users -= 1
    if (opened === undefined) return undefined
    const meanwhile = this.#pin(path)
    const held = meanwhile ?? { opening: Promise.resolve(opened), users: 1 }
    if (meanwhile) await this.fs.close(opened)
    else this.#held.set(path, held)
    await this.#makeRoom()
    return held
  }

  #pin(path: string): Held | undefined {
    const held = path === '' ? this.#root : this.#held.get(path)
    if (held === undefined) return undefined
    held.users += 1
    if (this.#held.delete(path)) this.#held.set(path, held)
    return held
  }

  #open(path: string, above: Held): Held {
    const held = { opening: this.#openIn(above, path), users: 1 }
    this.#held.set(path, held)
    return held
  }

  async #openIn(from: Held, path: string, name = nameOf(path)): Promise<Descriptor> {
    const opened = await this.fs.openDirectory(await from.opening, name)
    const before = this.#closed.get(path)
    if (before === undefined) return opened
    try {
      if (isSame(before, identityOf(await this.fs.attributes(opened)))) return opened
      const message = `${path} has become another directory meanwhile`
      throw Object.assign(new Error(message), { code: 'ESTALE', syscall: 'openat2' })
    } catch (error) {
      await this.fs.close(opened)
      throw error
    }
  }

  async #makeRoom(): Promise<void> {
    while (this.#held.size > this.fs.openDirectories) {
      const [path, held] = [...this.#held].find(([, { users }]) => users === 0) ?? []
      if (path === undefined || held === undefined) return
      held.users += 1
      const opened = await held.opening
      if (!this.#closed.has(path)) this.#closed.set(path, identityOf(await this.fs.attributes(opened)))
      held.users -= 1
      // A caller may have asked for it during the wait; a descriptor in use stays open.
      if (held.users > 0) continue
      this.#held.delete(path)
      await this.fs.close(opened)
    }
  }
}

/** Runs `work` with the directories below an open one, and closes them. */
export async function inTree<T>(
  fs: FileSystem,
  root: Descriptor,
  work: (directories: OpenDirectories) => Promise<T>,
): Promise<T> {
  const directories = new OpenDirectories(fs, root)
  try {
    return await work(directories)
  } finally {
    await directories.closeAll()
  }
}

interface Expected {
  readonly path: string
  readonly type: EntryType
  /** Bytes; undefined: any number. */
  readonly size?: number | undefined
}

/** Entries and bytes beyond what is expected that a look still reads, so that it can name them. */
const mostMore = { entries: 128, bytes: 4 * 1024 * 1024 }

/**
 * How far a directory is read that others may write to: to what its records and the wanted content have, and a little more. Whoever owns it
 * can put any number of files into it, of any size and depth, and all of that is one thing: not what was published.
 */
export class Bound {
  /** Something was left out: no digest of this directory is that of a content. */
  isCut = false
  /** Bytes by path; where an entry has no size, any number. */
  readonly #expected = new Map<string, number>()
  readonly #names = new Map<string, string[]>()
  #entries: number
  #bytes: number

  constructor(expected: Iterable<Expected>, { entries, bytes } = mostMore) {
    this.#entries = entries
    this.#bytes = bytes
    for (const { path, type, size = Infinity } of expected) {
      const before = this.#expected.get(path)
      this.#expected.set(path, Math.max(before ?? 0, type === 'file' ? size : 0))
      if (before !== undefined || path === '') continue
      const names = this.#names.get(parentOf(path)) ?? []
      this.#names.set(parentOf(path), names)
      names.push(nameOf(path))
    }
  }

  /** The names that a directory may have. */
  namesIn(directory: string): readonly string[] {
    return this.#names.get(directory) ?? []
  }

  /** How many names of a directory are worth a look: with one more, something is left out for certain. */
  mostIn(directory: string): number {
    return this.namesIn(directory).length + Math.max(0, this.#entries) + 1
  }

  /** Whether an entry belongs to what is read. */
  takes(path: string): boolean {
    if (this.#expected.has(path)) return true
    this.#entries -= 1
    return this.#entries >= 0 || this.leftOut()
  }

  /** The same of the content of a file. */
  reads(path: string, size: number): boolean {
    const more = Math.max(0, size - (this.#expected.get(path) ?? 0))
    if (more > this.#bytes) return this.leftOut()
    this.#bytes -= more
    return true
  }

  leftOut(): false {
    this.isCut = true
    return false
  }
}

/** All that is in a directory, and in those below it, as far as the bound goes: in byte order of the paths. */
export async function* entriesBelow(
  directories: OpenDirectories,
  bound?: Bound,
): AsyncIterable<{ readonly path: string; readonly type: Entry['type'] }> {
  const pending = [{ path: '', type: 'directory' as Entry['type'], key: '/' }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { path, type, key } = next
    if (!key.endsWith('/')) {
      yield { path, type }
      continue
    }
    const found = await directories.use(path, (directory) => entriesOf(directories.fs, directory, path, bound))
    // `a/…` comes after `a-b`, since a slash comes after a dash.
    const both = found.flatMap((entry) => {
      const below = { path: inside(path, entry.name), type: entry.type, key: entry.name }
      return entry.type === 'directory' ? [below, { ...below, key: `${entry.name}/` }] : [below]
    })
    for (const one of both.sort((a, b) => compareBytes(b.key, a.key))) pending.push(one)
  }
}

/** Of a directory with too many names it tells the expected ones, whichever the kernel tells first. */
async function entriesOf(fs: FileSystem, directory: Descriptor, path: string, bound?: Bound): Promise<Entry[]> {
  if (bound === undefined) return fs.entries(directory)
  const listed = await fs.entries(directory, bound.mostIn(path))
  const found = listed.filter(({ name }) => bound.takes(inside(path, name)))
  if (found.length === listed.length) return found
  const names = new Set(found.map(({ name }) => name))
  for (const name of bound.namesIn(path)) {
    const attributes = names.has(name) ? undefined : await fs.look(directory, name)
    if (attributes !== undefined) found.push({ name, type: attributes.type })
  }
  return found
}

/** The path of a name in a directory. */
export function inside(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`
}
