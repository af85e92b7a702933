import { basename, dirname } from 'node:path'
import type { Descriptor, FileSystem } from './file-system.js'
import { type Place, resolve } from './resolve.js'
import { Scope } from './scope.js'

/** What the targets of one batch have in common: a parent is found and listed once, however many targets it holds. */
export class Parents {
  readonly #scope: Scope
  readonly #places = new Map<string, Promise<Place>>()
  readonly #listings = new Map<Descriptor, Promise<string[]>>()

  constructor(readonly fs: FileSystem) {
    this.#scope = new Scope(fs)
  }

  /** Where the target is. Makes nothing. */
  async place(target: string): Promise<Place> {
    const parent = dirname(target)
    const known = this.#places.get(parent)
    if (known === undefined) {
      const finding = resolve(this.#scope, target)
      this.#places.set(parent, finding)
      return finding
    }
    const place = await known.catch(() => undefined)
    // What was refused is refused for each target in its own words.
    return place ? { ...place, target, name: basename(target) } : resolve(this.#scope, target)
  }

  /** The names in a directory, as they were once. To be asked only under the locks of all targets in it. */
  names(directory: Descriptor): Promise<string[]> {
    const known = this.#listings.get(directory)
    if (known) return known
    const listing = this.fs.list(directory)
    this.#listings.set(directory, listing)
    return listing
  }

  close(): Promise<void> {
    return this.#scope.closeAll()
  }
}
