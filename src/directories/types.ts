import type { RecordedObject } from '../durable/types.js'
import type { ObjectReference } from '../objects/types.js'
import type { Reason } from '../reasons.js'

/** A finding about a directory: why it cannot be published, or what is doubtful in it. Never holds content. */
export interface Finding {
  readonly reason: Reason
  readonly message: string
  readonly reference?: ObjectReference
}

export interface RenderedFile {
  readonly content: Uint8Array
  /** undefined: the directory's fileMode. */
  readonly mode?: number
}

/** When the certificates of a file are valid: the latest not-before and the earliest not-after of its blocks. */
export interface CertificateDate {
  readonly file: string
  readonly notBefore: Date
  readonly notAfter: Date
}

/** What a directory must hold, or why that is unknown now. */
export type Rendering =
  | {
      readonly ready: true
      /** By relative path. */
      readonly files: Readonly<Record<string, RenderedFile>>
      readonly objects: readonly RecordedObject[]
      readonly warnings: readonly Finding[]
      readonly certificates: readonly CertificateDate[]
    }
  | {
      readonly ready: false
      /** At least one. The first decides the condition's reason. */
      readonly findings: readonly Finding[]
      /** Content that was dropped from memory could not be read again: nobody else will say when it can. */
      readonly unread?: true
    }

/**
 * What is published of an object, for when it has vanished (`onMissing: keep`), is being deleted, or cannot be read: the files
 * of `recorded.paths` and of `recorded.combined`, as they are on the disk. A path that cannot be read is left out.
 */
export interface KeptObject {
  readonly recorded: RecordedObject
  readonly files: Readonly<Record<string, RenderedFile>>
}
