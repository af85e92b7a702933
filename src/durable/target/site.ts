import { basename, dirname, join } from 'node:path'
import { DurableWriteError, unfit } from '../errors.js'
import type { Mount, Descriptor, FileSystem } from '../file-system.js'
import {
  type TargetNames,
  lock,
  namesFor,
  placeKey,
  pathWithin,
  unprovenRefused,
  openAncestors,
  openParent,
  type Parent,
  type Place,
  inScope,
  resolve,
  type Scope,
} from '../path/index.js'
import { readRecords, type Records } from '../record/index.js'
import { type Above, insideAnother, targetAbove } from './nesting.js'
import { nothingPublished, refuseNewer } from './refusals.js'
import type { HoldOptions, PublicationOptions } from '../types.js'

/** Where a target is: its open parent, and its names. */
export class Site {
  readonly name: string
  readonly names: TargetNames
  #place: Place | undefined
  #stoppedAt: string | undefined
  #parent: Parent | undefined
  #mount: Mount | undefined

  constructor(
    readonly scope: Scope,
    readonly path: string,
    family?: string,
  ) {
    this.name = path.slice(path.lastIndexOf('/') + 1)
    this.names = namesFor(this.name, family)
  }

  /**
   * Finds the parent. Makes nothing. `parents`: what other targets have found of theirs.
   * @throws DurableWriteError where another target holds this one
   */
  async resolve(parents = new Parents(this.scope)): Promise<Place> {
    this.#place = await parents.place(this.path).catch((error: unknown) => {
      if (error instanceof DurableWriteError) this.#stoppedAt = error.path
      throw error
    })
    const above = await parents.targetAbove(this.#place.realParent)
    if (above) throw insideAnother(this.path, above)
    return this.#place
  }

  get isResolved(): boolean {
    return this.#place !== undefined
  }

  get place(): Place {
    if (!this.#place) throw new Error('resolve() comes first')
    return this.#place
  }

  /** The target's path without symbolic links. */
  get realPath(): string {
    const { realParent } = this.place
    return `${realParent === '/' ? '' : realParent}/${this.name}`
  }

  /** The real path. Where the path does not resolve: the entry that stands in its way. Before resolve(): the path as the caller gave it. */
  get reached(): string {
    return this.#place ? this.realPath : (this.#stoppedAt ?? this.path)
  }

  /** The target's path in its file system. */
  get within(): string {
    return pathWithin(this.mount, this.realPath)
  }

  /**
   * Finds the parent again by the caller's path, and throws where that leads elsewhere now: the new content is durable, but readers of this
   * path do not find it. `parents`: found after the exchange.
   */
  async confirm(parents: Parents): Promise<void> {
    if (await this.isInPlace(parents)) return
    throw new DurableWriteError(`a directory above ${this.path} was renamed or removed while it was published`, {
      code: 'ESTALE',
      syscall: 'openat2',
      path: this.path,
      published: true,
      state: 'the new content is in that directory, wherever it is now',
      advice: 'publish again',
    })
  }

  /** Whether the caller's path still leads to the parent. `parents`: found after the change that this confirms. */
  async isInPlace(parents = new Parents(this.scope)): Promise<boolean> {
    const { anchor, missing } = await parents.place(this.path)
    const { device, inode } = this.parent.attributes
    const found = missing.length === 0 ? await this.scope.fs.attributes(anchor) : undefined
    return found?.inode === inode && found.device === device
  }

  /** Refuses where the options forbid to make the missing ancestors, or that file system. Makes nothing. */
  async admit({ requireProven, parents }: Pick<PublicationOptions, 'requireProven' | 'parents'>): Promise<void> {
    if (parents === false) this.#refuseMissing()
    this.#mount = await this.scope.fs.mount(this.place.anchor)
    if (requireProven === true && !this.#mount.proven) {
      throw unprovenRefused(this.path, this.#mount.type, 'remove requireProven')
    }
  }

  /** Opens the parent, and makes its missing ancestors. @throws DurableWriteError where admit() refuses */
  async open(options: Pick<PublicationOptions, 'requireProven' | 'parents'>): Promise<void> {
    await this.admit(options)
    this.#parent = await openParent(this.scope, this.place)
  }

  #refuseMissing(): void {
    const [outermost] = this.place.missing
    if (outermost === undefined) return
    const path = join(this.#existing, outermost)
    throw unfit(`${path} does not exist, and ${this.path} would be in it`, {
      code: 'ENOENT',
      syscall: 'openat2',
      path,
      advice: 'make this directory, or have holdfast make it (--parents; in the library, parents: true)',
    })
  }

  /** The deepest directory above the target that exists. */
  get #existing(): string {
    const { realParent, missing } = this.place
    // The missing ones are the last parts of the parent's path.
    return join(realParent, ...missing.map(() => '..'))
  }

  /** Throws what the system answers where this user may make no entry in the deepest directory that exists. */
  async refuseUnwritable(): Promise<void> {
    await this.scope.fs.accessPath(this.#existing)
  }

  /**
   * Refuses what lock() would refuse, and makes no lock. It lets an existing one go at once: a look keeps no publication out.
   * @throws DurableWriteError as lock()
   */
  async refuseLocked(lockTimeout: number | undefined, signal: AbortSignal | undefined): Promise<void> {
    const { fs } = this.scope
    if ((await fs.look(this.parent.directory, this.names.lock)) === undefined) return this.refuseUnwritable()
    await inScope(fs, (scope) => this.lock(lockTimeout, signal, scope))
  }

  get parent(): Parent {
    if (!this.#parent) throw new Error('open() comes first')
    return this.#parent
  }

  get mount(): Mount {
    if (!this.#mount) throw new Error('open() comes first')
    return this.#mount
  }

  /** The parent's device and inode, and the lock's name: equal for two paths that are one target. */
  get identity(): string {
    return placeKey(this.parent.attributes, this.names.lock)
  }

  /** Takes the target's lock until the scope ends. */
  lock(timeout: number | undefined, signal: AbortSignal | undefined, scope = this.scope): Promise<void> {
    return lock(scope, { parent: this.parent, name: this.names.lock, target: this.path, timeout, signal })
  }

  /** Every directory above the parent, open, up to the root of its mount. */
  ancestors(): Promise<Descriptor[]> {
    return openAncestors(this.scope, this.place, this.parent.directory, this.mount)
  }
}

/** A target that this call has locked. */
export interface LockedTarget {
  readonly site: Site
  readonly records: Records
}

interface Locking<T> extends Pick<HoldOptions, 'lockTimeout' | 'requireProven' | 'signal'> {
  /**
   * Whether the directory of the target holds anything that `use` needs: a lock stays for ever, so only then does this call make one.
   * Default: a lock, or a trace of a publication.
   */
  readonly isNeeded?: (site: Site) => Promise<boolean>
  /** Answers, or throws, where it does not. Default: refuses, since holdfast has published nothing there. */
  readonly absent?: () => T
  /** `use` changes nothing: it runs without the lock, once that was seen free, and where this user may write. */
  readonly dryRun?: boolean
}

/**
 * Runs `use` with the target's directory found and open, its lock held and its records read.
 * @throws DurableWriteError where another target holds this one, durability is not proven and has to be, another process holds the lock
 *   (Busy), or a newer holdfast wrote a record; what the system answers
 */
export async function withLockedTarget<T>(
  fs: FileSystem,
  path: string,
  { lockTimeout = 0, requireProven = false, signal, isNeeded = isKnown, absent, dryRun = false }: Locking<T>,
  use: (target: LockedTarget) => Promise<T>,
): Promise<T> {
  const none = (): T => {
    if (absent) return absent()
    throw nothingPublished(path)
  }
  return inScope(fs, async (scope) => {
    const site = new Site(scope, path)
    if ((await site.resolve()).missing.length > 0) return none()
    await site.open({ requireProven })
    if (!(await isNeeded(site))) return none()
    if (dryRun) await site.refuseLocked(lockTimeout, signal)
    else await site.lock(lockTimeout, signal)
    const records = await readRecords(fs, site.parent.directory, site.name, site.names)
    refuseNewer(path, records)
    const result = await use({ site, records })
    if (dryRun) await site.refuseUnwritable()
    return result
  })
}

/**
 * Whether there is a lock, or a trace of a publication. A new lock beside a mistyped path, or in a bare mount point, would claim a target
 * there.
 */
async function isKnown({ scope: { fs }, name, names, parent }: Site): Promise<boolean> {
  const { directory } = parent
  if ((await fs.look(directory, names.lock)) !== undefined) return true
  const { valid, torn, newer, staging, generations } = await readRecords(fs, directory, name, names)
  return [valid, torn, newer, staging, generations].some(({ length }) => length > 0)
}

/**
 * Which of these paths leads to the same target, as by a symbolic link or a bind mount above it; undefined: none. A path whose parent is
 * missing leads nowhere. Throws the error that keeps holdfast from finding a parent.
 */
export async function sameTarget(
  fs: FileSystem,
  target: string,
  others: readonly string[],
): Promise<string | undefined> {
  return inScope(fs, async (scope) => {
    const parents = new Parents(scope)
    const parentOf = async (path: string): Promise<string | undefined> => {
      const { anchor, missing } = await parents.place(path)
      const { device, inode } = await fs.attributes(anchor)
      return missing.length === 0 ? `${device}:${inode}` : undefined
    }
    // A path with another name is another target: its disk may stay asleep.
    const named = others.filter((path) => basename(path) === basename(target))
    const parent = named.length === 0 ? undefined : await parentOf(target)
    for (const path of parent === undefined ? [] : named) {
      if ((await parentOf(path)) === parent) return path
    }
    return undefined
  })
}

/** What the targets of one batch have in common: a parent is found and listed once, however many targets it holds. */
export class Parents {
  readonly #places = new Map<string, Promise<Place>>()
  readonly #above = new Map<string, Promise<Above | undefined>>()
  readonly #listings = new Map<Descriptor, Promise<string[]>>()

  constructor(readonly scope: Scope) {}

  /** Where the target is. Makes nothing. */
  async place(target: string): Promise<Place> {
    const parent = dirname(target)
    const known = this.#places.get(parent)
    if (known === undefined) {
      const finding = resolve(this.scope, target)
      this.#places.set(parent, finding)
      return finding
    }
    const place = await known.catch(() => undefined)
    // A shared look that failed is repeated, so that each target gets an error about itself.
    return place ? { ...place, target, name: basename(target) } : resolve(this.scope, target)
  }

  /** The target that holds this directory, or is it; the path has no symbolic links. */
  targetAbove(directory: string): Promise<Above | undefined> {
    const known = this.#above.get(directory)
    if (known) return known
    const finding = targetAbove(this.scope.fs, directory)
    this.#above.set(directory, finding)
    return finding
  }

  /** The names in a directory, as they were once. To be asked only under the locks of all targets in it. */
  names(directory: Descriptor): Promise<string[]> {
    const known = this.#listings.get(directory)
    if (known) return known
    const listing = this.scope.fs.list(directory)
    this.#listings.set(directory, listing)
    return listing
  }
}
