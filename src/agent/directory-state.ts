import type { DirectoryConfiguration } from '../config/types.js'
import type { CertificateDate } from '../directories/types.js'
import type { Publication } from '../durable/types.js'
import type { DirectoryStatus } from './status-document.js'
import { transition, type Condition, type Verdict } from './conditions.js'

/** An object as status and logs name it. */
export interface PublishedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

/**
 * What the agent remembers of one configured directory. Never content: what is on the disk is read from there, what is wanted
 * comes from the source.
 */
export class DirectoryState {
  configuration: DirectoryConfiguration
  /** The disk has been compared with the record since the start. */
  compared = false
  /** The disk holds what the record says, known to be durable. */
  whole = false
  /** What differed from the record at the last comparison; undefined: nothing. */
  drift: string | undefined
  digest: string | undefined
  publishedAt: Date | undefined
  objects: readonly PublishedObject[] = []
  /** The objects in the versions that the record on the disk names: after a restart, no older ones are accepted. */
  recordedObjects: readonly PublishedObject[] = []
  /** When `recordedObjects` were last brought up by themselves, by performance.now(). */
  recordedAt = -Infinity
  /** Grows with each publication: what was begun for an earlier one knows by it that it is out of date. */
  generation = 0
  /** Keys of hooks that are still to run for `digest`. */
  pendingHooks: readonly string[] = []
  certificates: readonly CertificateDate[] = []
  /** When the source last said that what is published is the newest. */
  confirmedAt: Date | undefined
  published: Condition | undefined
  fresh: Condition | undefined

  constructor(configuration: DirectoryConfiguration) {
    this.configuration = configuration
  }

  get path(): string {
    return this.configuration.path
  }

  /** What a record and the disk say, after a comparison; undefined: there is no record. */
  adopt(publication: Publication | undefined): void {
    const recorded = (publication?.objects ?? []).map(withoutPaths)
    // For the same content, newer versions may be known than were recorded yet.
    if (!this.compared || this.digest !== publication?.digest) this.objects = recorded
    this.recordedObjects = recorded
    this.compared = true
    this.whole = publication !== undefined && publication.settled && publication.differences.length === 0
    this.digest = publication?.digest
    this.publishedAt = publication?.publishedAt
    this.pendingHooks = publication?.pendingHooks ?? []
  }

  /** What the last run told: where it still holds, conditions keep their transition times. */
  restore({ conditions, confirmedAt }: Pick<DirectoryStatus, 'conditions' | 'confirmedAt'>): void {
    this.published = conditions.find(({ type }) => type === 'Published')
    this.fresh = conditions.find(({ type }) => type === 'Fresh')
    const date = new Date(confirmedAt ?? NaN)
    this.confirmedAt = Number.isNaN(date.getTime()) ? undefined : date
  }

  /** Tells whether the condition is another one than before. */
  setPublished(verdict: Verdict, now: Date): boolean {
    const previous = this.published
    this.published = transition('Published', previous, verdict, now)
    return previous !== this.published
  }

  setFresh(verdict: Verdict, now: Date): boolean {
    const previous = this.fresh
    this.fresh = transition('Fresh', previous, verdict, now)
    return previous !== this.fresh
  }
}

/** Only what status and logs show: a record's list of files would be held in memory for nothing. */
export function withoutPaths(object: PublishedObject): PublishedObject {
  const { kind, namespace, name, uid, resourceVersion } = object
  return { kind, namespace, name, uid, resourceVersion }
}

/** Whether the directory holds something that is not optional: only such a one counts for readiness. */
export function hasRequired(configuration: DirectoryConfiguration): boolean {
  return configuration.contents.some(({ optional }) => !optional)
}
