import { parentOf, nameOf } from '../../relative-path.js'
import type { EntryType } from '../file-system.js'

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
