import type { RecordedObject } from '../durable/types.js'
import type { ObjectReference } from '../objects/types.js'
import type { Reason } from '../reasons.js'

/** A finding about a directory: the reason why it cannot be published, or a doubtful part of it. Never holds content. */
export interface ContentFinding {
  readonly reason: Reason
  readonly message: string
  readonly reference?: ObjectReference
  /** A mistake of this node's configuration of its source, such as an unknown context. */
  readonly misconfigured?: true
  /** The file that held certificates and is empty now. */
  readonly emptied?: string
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

/** The files that a directory must hold, or why they are unknown now. */
export type Rendering =
  | {
      readonly ready: true
      /** By relative path. */
      readonly files: Readonly<Record<string, RenderedFile>>
      readonly objects: readonly RecordedObject[]
      readonly warnings: readonly ContentFinding[]
      readonly certificates: readonly CertificateDate[]
    }
  | Unrendered

export interface Unrendered {
  readonly ready: false
  /** At least one. The first decides the condition's reason. */
  readonly findings: readonly ContentFinding[]
  /** Content dropped from memory could not be read again: the source sends no event once it can, so the agent has to retry. */
  readonly unread?: true
}

/**
 * The published part of an object, for when it has vanished (`onMissing: keep`), is being deleted, or cannot be read: the files
 * of `recorded.paths` and of `recorded.combined`, as they are on the disk. An unreadable path is left out.
 */
export interface KeptObject {
  readonly recorded: RecordedObject
  readonly files: Readonly<Record<string, RenderedFile>>
}
