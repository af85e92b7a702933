import type { CertificateDate, Finding } from '../directories/types.js'
import type { Outcome, RecordedObject } from '../durable/types.js'
import type { Reason } from '../reasons.js'

/** What one try to publish a directory came to. */
export type Attempt =
  /** Not all of its objects have been told yet. */
  | { readonly kind: 'waiting'; readonly message: string }
  /** What it must hold cannot be told, or must not be published. Nothing was written. */
  | { readonly kind: 'incomplete'; readonly findings: readonly Finding[] }
  | {
      readonly kind: 'published'
      readonly outcome: Outcome
      readonly digest: string
      readonly objects: readonly RecordedObject[]
      readonly warnings: readonly Finding[]
      readonly certificates: readonly CertificateDate[]
      /** Keys of the hooks that were recorded with a new publication. */
      readonly hooks: readonly string[]
      readonly unproven: boolean
    }
  | {
      readonly kind: 'failed'
      readonly reason: Reason
      /** Trying again changes nothing: the configuration or the disk has to change first. */
      readonly terminal: boolean
      /** The new content is visible, its durability is unknown. */
      readonly published: boolean
      readonly error: Error
    }
  /** Given up before anything was visible, because the process is to end. */
  | { readonly kind: 'abandoned' }

/** Reasons that say only that the source cannot be asked now: what is on the disk stays good. */
const sourceReasons: ReadonlySet<Reason> = new Set(['SourceUnavailable', 'AccessDenied'])

/** The directory is incomplete for no other reason than that its source does not answer. */
export function isSourceAway(attempt: Attempt): boolean {
  if (attempt.kind === 'waiting') return true
  return attempt.kind === 'incomplete' && attempt.findings.every(({ reason }) => sourceReasons.has(reason))
}
