/** The files of a directory while they are gathered. Two that cannot stand beside each other, and paths that climb, become findings. */
import { objectName } from '../message-text.js'
import { directoriesAbove } from '../relative-path.js'
import type { ObjectReference, ObjectVersion } from '../objects/types.js'
import type { RecordedObject } from '../durable/types.js'
import { missingFinding, type Availability } from './availability.js'
import type { ContentFinding, RenderedFile } from './types.js'

export interface DraftFile extends RenderedFile {
  /** Where it comes from, for messages: `directories[0].contents[1], Secret a/b, key tls.crt`. */
  readonly origin: string
  /** The object that it comes from; undefined where it was made of several. */
  readonly reference: ObjectReference | undefined
  /** It is published already: a check that finds something in it has no news. */
  readonly kept: boolean
  /** The keys that it was made of, in order; a kept file has none. */
  readonly parts?: readonly DraftPart[]
}

export interface DraftPart {
  readonly reference: ObjectReference
  readonly key: string
  readonly bytes: Uint8Array
}

interface DraftObject {
  readonly reference: ObjectReference
  readonly version: ObjectVersion
  readonly paths: Set<string>
  readonly combined: Set<string>
  readonly others: Set<string>
}

export class Draft {
  readonly files = new Map<string, DraftFile>()
  /** Every directory above a file, and which file's. */
  readonly #directories = new Map<string, string>()
  readonly #objects = new Map<string, DraftObject>()
  readonly #findings = new Map<string, ContentFinding>()
  /** The contents that lack an object, by its name. */
  readonly #lacking = new Map<string, Set<string>>()

  constructor(private readonly mostFiles: number) {}

  /** It has more files than the directory may have: a finding says so, and nothing more is needed. */
  get isFull(): boolean {
    return this.files.size > this.mostFiles
  }

  /** The same finding of two contents is one. */
  find(finding: ContentFinding): void {
    if (!this.#findings.has(finding.message)) this.#findings.set(finding.message, finding)
  }

  /** A required object is missing: one finding, however many contents ask for it. */
  lacks(availability: Availability, place: string): void {
    const name = objectName(availability.reference)
    const places = this.#lacking.get(name) ?? new Set()
    this.#lacking.set(name, places.add(place))
    this.#findings.set(`missing ${name}`, missingFinding(availability, [...places]))
  }

  get findings(): readonly ContentFinding[] {
    return [...this.#findings.values()]
  }

  add(path: string, file: DraftFile, reference: ObjectReference): void {
    const message = this.#conflict(path, file.origin)
    if (message !== undefined) {
      this.find({ reason: 'ObjectInvalid', message, reference })
      return
    }
    this.files.set(path, file)
    if (this.isFull) {
      const rule = `the directory would hold more than ${this.mostFiles} files, its limits.files`
      this.find({ reason: 'ObjectInvalid', message: `${objectName(reference)}: with it, ${rule}`, reference })
    }
    for (const directory of directoriesAbove(path)) {
      if (!this.#directories.has(directory)) this.#directories.set(directory, file.origin)
    }
  }

  /**
   * Notes that an object is part of the directory, and which files it gave, alone or with others. `from`: it has given a file that stays, as
   * it was recorded then.
   */
  record(
    reference: ObjectReference,
    version: ObjectVersion,
    given: { readonly path?: string; readonly combined?: string; readonly from?: RecordedObject | undefined } = {},
  ): void {
    const name = objectName(reference)
    const none = { paths: new Set<string>(), combined: new Set<string>(), others: new Set<string>() }
    const object = this.#objects.get(name) ?? { reference, version, ...none }
    this.#objects.set(name, object)
    for (const uid of [given.from?.uid ?? '', ...(given.from?.others ?? [])]) {
      if (uid !== '' && uid !== object.version.uid) object.others.add(uid)
    }
    if (given.path !== undefined) object.paths.add(given.path)
    if (given.combined !== undefined) object.combined.add(given.combined)
  }

  get objects(): RecordedObject[] {
    return [...this.#objects.values()].map(({ reference, version, paths, combined, others }) => {
      const { kind, namespace, name } = reference
      const { uid, resourceVersion } = version
      return {
        kind,
        namespace,
        name,
        uid,
        resourceVersion,
        paths: [...paths],
        ...(combined.size > 0 && { combined: [...combined] }),
        ...(others.size > 0 && { others: [...others] }),
      }
    })
  }

  #conflict(path: string, origin: string): string | undefined {
    const shown = JSON.stringify(path)
    if (!isInside(path)) return `${shown} (${origin}) is not a path inside the directory`
    const same = this.files.get(path)
    if (same !== undefined) return `${shown} is written twice: by ${same.origin}, and by ${origin}`
    const below = this.#directories.get(path)
    if (below !== undefined) return `${shown} is a file of ${origin}, and a directory of ${below}`
    const above = directoriesAbove(path).find((directory) => this.files.has(directory))
    if (above === undefined) return undefined
    const file = this.files.get(above)
    return `${JSON.stringify(above)} is a file of ${file?.origin ?? ''}, and a directory of ${origin}`
  }
}

function isInside(path: string): boolean {
  return !path.includes('\0') && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}
