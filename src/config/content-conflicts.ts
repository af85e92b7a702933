/**
 * Finds conflicts of contents before any object is seen: files of the same path, and a path that would be a file and a
 * directory. The keys of an object are unknown here: rendering the directory checks them again.
 */
import { objectName } from '../object-name.js'
import type { Content, PublishForm } from './types.js'
import { quote } from '../quote.js'
import { placeholder } from './references.js'
import type { Value } from './value.js'

/** A content with the values that its paths come from, for the checks that compare contents with each other. */
export interface ReadContent {
  readonly content: Content
  /** Where `into`, or the combined file's path, is written. */
  readonly at: Value
  /** Where each item's path is written, in the order of the items. */
  readonly itemPaths: readonly Value[]
}

export function reportContentConflicts(
  contents: readonly ReadContent[],
  publish: PublishForm,
  reservesDots: boolean,
): void {
  const all = new InnerPaths()
  const everyKey = new Map<string, string>()
  for (const { content, at, itemPaths } of contents) {
    // Two selectors with the same paths may well select objects with different names.
    const paths = content.type === 'selector' ? new InnerPaths() : all
    const named =
      content.type === 'combine'
        ? [{ path: content.path, at }]
        : (content.items ?? []).map((item, index) => ({
            path: content.into === '' ? item.path : `${content.into}/${item.path}`,
            at: itemPaths[index] ?? at,
          }))
    for (const file of named) paths.addFile(file.path, file.at)
    if (content.type === 'selector') {
      // These directories hold the files of every object, under any name.
      const below = content.items === undefined ? [{ path: content.into, at }] : named
      for (const one of below) all.addDirectory(aboveNames(one.path), one.at)
    }
    if (reservesDots) {
      if (content.type !== 'combine' && content.items === undefined) reportReserved(content.into, publish, at)
      for (const file of named) reportReserved(file.path, publish, file.at)
    }
    if (content.type === 'combine' || content.items !== undefined) continue
    paths.addDirectory(content.into, at)
    const identity = `${objectName(content.reference)} into ${content.into}`
    const first = everyKey.get(identity)
    if (first !== undefined) {
      at.wrong(`writes every key of ${objectName(content.reference)} a second time: ${first} does so already`)
    }
    everyKey.set(identity, first ?? content.place)
  }
}

/** The directory that holds what a selector selects, as far as it is the same for all. */
function aboveNames(path: string): string {
  const parts = path.split('/')
  const named = parts.findIndex((part) => part.includes(placeholder))
  return parts.slice(0, Math.max(0, named)).join('/')
}

/** With `publish: symlink`, `..data` and the generations stand beside the links of the contents. */
function reportReserved(path: string, publish: PublishForm, at: Value): void {
  const [top = ''] = path.split('/')
  if (!top.startsWith('..')) return
  at.wrong(`${quote(top)} is reserved with publish: ${publish}`, "choose a name that does not start with '..'")
}

class InnerPaths {
  readonly #files = new Map<string, Value>()
  readonly #directories = new Map<string, Value>()

  addFile(path: string, at: Value): void {
    const same = this.#files.get(path)
    const inside = this.#directories.get(path)
    if (same !== undefined) at.wrong(`${quote(path)} is written twice, first by ${same.place}`)
    else if (inside !== undefined) at.wrong(`${quote(path)} is a file here, and a directory for ${inside.place}`)
    else this.#files.set(path, at)
    this.addDirectory(path.slice(0, Math.max(0, path.lastIndexOf('/'))), at)
  }

  /** Every prefix of it is a directory too. */
  addDirectory(path: string, at: Value): void {
    for (let prefix = path; prefix !== ''; prefix = prefix.slice(0, Math.max(0, prefix.lastIndexOf('/')))) {
      const file = this.#files.get(prefix)
      if (file !== undefined) {
        at.wrong(`${quote(prefix)} is a directory here, and a file for ${file.place}`)
        return
      }
      if (!this.#directories.has(prefix)) this.#directories.set(prefix, at)
    }
  }
}
