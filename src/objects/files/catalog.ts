/** What the files hold, all together, and what that says of one object. */
import { describeReference, type ObjectReference, type ObservedState } from '../types.js'
import type { FileError } from './error.js'
import type { FileObject } from './objects.js'

export interface LoadedFile {
  /** The stamp of what was read last, good or bad. */
  readonly stamp: string
  /** What was last read from it that was good. */
  readonly objects: readonly FileObject[]
  /** What is wrong with it now. */
  readonly error: FileError | undefined
}

export interface Answer {
  readonly observation: ObservedState
  /** The files confirm it as they are now: nothing that concerns it is unread. */
  readonly confirmed: boolean
}

export class Catalog {
  readonly #files = new Map<string, LoadedFile>()
  #index: Map<string, Found[]> | undefined

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
   * What the files say of it, `latest` being what they said before. An object that is in no file is absent only if every file
   * could be read: it may be in the one that could not.
   */
  answer(reference: ObjectReference, latest: ObservedState | undefined): Answer {
    const key = describeReference(reference)
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

  #byKey(): Map<string, Found[]> {
    if (this.#index) return this.#index
    const index = new Map<string, Found[]>()
    for (const { objects, error } of this.#files.values()) {
      for (const entry of objects) {
        const key = describeReference(entry.object.reference)
        index.set(key, [...(index.get(key) ?? []), { ...entry, error }])
      }
    }
    this.#index = index
    return index
  }
}

interface Found extends FileObject {
  readonly error: FileError | undefined
}
