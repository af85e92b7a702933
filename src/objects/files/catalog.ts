/** The objects of all files together, and the answers about each object that follow from them. */
import { objectName } from '../../message-text.js'
import { parseSelector, selects } from '../../label-selector.js'
import type { ObjectReference, ObservedState } from '../types.js'
import type { FileError } from './error.js'
import type { FileObject } from './objects.js'

export interface LoadedFile {
  /** The stamp of the last read, good or bad. */
  readonly stamp: string
  /** The objects of the last good read. */
  readonly objects: readonly FileObject[]
  /** The file's present fault. */
  readonly error: FileError | undefined
}

export interface CatalogAnswer {
  readonly observation: ObservedState
  /** The files confirm it as they are now: nothing that concerns it is unread. */
  readonly confirmed: boolean
}

export class Catalog {
  readonly #files = new Map<string, LoadedFile>()
  #index: Map<string, FoundObject[]> | undefined

  get(name: string): LoadedFile | undefined {
    return this.#files.get(name)
  }

  names(): string[] {
    return [...this.#files.keys()]
  }

  set(name: string, file: LoadedFile): void {
    this.#files.set(name, file)
    this.#index = undefined
  }

  delete(name: string): void {
    this.#files.delete(name)
    this.#index = undefined
  }

  /**
   * The files' answer about it, `latest` being their last one. An object that is in no file is absent only if every file
   * could be read: it may be in an unreadable one.
   */
  answer(reference: ObjectReference, latest: ObservedState | undefined): CatalogAnswer {
    const { selector } = reference
    if (selector !== undefined) return this.#select({ ...reference, selector }, latest)
    const key = objectName(reference)
    const found = this.#byKey().get(key) ?? []
    const [first] = found
    if (first && found.length > 1) {
      const places = found.map(({ place }) => place).join(' and ')
      const message = `${key}: more than one file holds it: ${places}; remove all but one`
      return { observation: { state: 'unknown', reason: 'ObjectInvalid', message }, confirmed: false }
    }
    if (first) {
      return { observation: { state: 'present', object: first.object }, confirmed: first.error === undefined }
    }
    const error = [...this.#files.values()].find((file) => file.error)?.error
    if (error === undefined) return { observation: { state: 'absent' }, confirmed: true }
    if (latest?.state === 'absent') return { observation: latest, confirmed: false }
    const message = `${key}: no readable file holds it; ${error.message}`
    return { observation: { state: 'unknown', reason: error.reason, message }, confirmed: false }
  }

  /**
   * The matching names. An object that is in no file any more may be in an unreadable one; and at the start, nothing tells what such a
   * file would add.
   */
  #select(reference: Required<ObjectReference>, latest: ObservedState | undefined): CatalogAnswer {
    const { kind, namespace } = reference
    const selector = parseSelector(reference.selector)
    const own = [...this.#files.values()]
      .flatMap(({ objects }) => objects)
      .filter(({ object }) => object.reference.kind === kind && object.reference.namespace === namespace)
    const names = new Set(own.filter(({ labels }) => selects(selector, labels)).map(catalogName))
    const error = [...this.#files.values()].find((file) => file.error)?.error
    if (error !== undefined) {
      const there = new Set(own.map(catalogName))
      if (latest?.state !== 'selected' || latest.names.some((name) => !there.has(name))) {
        const message = `${objectName(reference)}: not every file can be read; ${error.message}`
        return { observation: { state: 'unknown', reason: error.reason, message }, confirmed: false }
      }
    }
    return { observation: { state: 'selected', names: [...names].sort() }, confirmed: error === undefined }
  }

  #byKey(): Map<string, FoundObject[]> {
    if (this.#index) return this.#index
    const index = new Map<string, FoundObject[]>()
    for (const { objects, error } of this.#files.values()) {
      for (const entry of objects) {
        const key = objectName(entry.object.reference)
        index.set(key, [...(index.get(key) ?? []), { ...entry, error }])
      }
    }
    this.#index = index
    return index
  }
}

function catalogName({ object }: FileObject): string {
  return object.reference.name
}

interface FoundObject extends FileObject {
  readonly error: FileError | undefined
}
