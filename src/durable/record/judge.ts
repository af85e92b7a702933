import type { Mount } from '../file-system.js'
import { type TargetNames, type Identity, isTrustedHere, type Tree } from '../path/index.js'
import { describes, type StoredRecord } from './record.js'
import { nextSequence, type Records } from './record-files.js'
import { inForce, isRecorded } from './speaking-record.js'
import { isSameContent } from './taken-over.js'
import type { Adopting, Outcome, PublicationOptions, ReplaceResult } from '../types.js'

/** The state of a target and of the files beside it, read under its lock. */
export interface Seen {
  readonly names: TargetNames
  /** Whether there is a target at all. */
  readonly exists: boolean
  /** Its content; undefined where it does not exist, or its form is broken. */
  readonly tree: Tree | undefined
  readonly records: Records
  /** Random parts of the staging names whose content is this program's. */
  readonly staging: readonly string[]
  /** The directory that holds it, and its place in the file system. */
  readonly parent: Identity
  readonly within: string
  /** A reboot keeps the numbers of inodes, as on ext4, xfs and btrfs. */
  readonly lasting: boolean
  /** Staging names are shared with other targets, of whose durability the records of this one say nothing. */
  readonly sharedStaging: boolean
}

/** The state that a predecessor left, and its remedy. */
export interface Judgement {
  /** Whether the target exists, with any content. */
  readonly exists: boolean
  /** The newest intact record, of the present content or another. */
  readonly newest: StoredRecord | undefined
  readonly tree: Tree | undefined
  /** The record of what the target holds now, if there is one. */
  readonly current: StoredRecord | undefined
  /** The same; where the content has drifted, the record of the content before that. */
  readonly record: StoredRecord | undefined
  /** The present content, or the absence of a target, is known to be durable, be it by another content's record. */
  readonly known: boolean
  /** The content is known to be durable, as the record says, but its ancestors may not be: the record names another place. */
  readonly moved: boolean
  /** Whether this program published the content, or another one changed such content since: the target is not foreign. */
  readonly recorded: boolean
  readonly nextSequence: number
  /** Names beside the target that can be removed at once. */
  readonly removeNow: readonly string[]
  /** Names beside the target that may be removed only once the next publication is committed. */
  readonly removeLater: readonly string[]
}

/**
 * Decides which state a predecessor left, from names of this target's form only. The content of the target is one of these:
 *
 * - it is the newest record's `after`, known durable: the publication was complete; all else is a leftover.
 * - it is, by its inode, the content before the newest record's publication, and known durable: that publication was aborted before the
 *   exchange. Content that only equals it is drift: see speaking-record.ts.
 * - it is either, but not known durable (killed between exchange and commit, or a failed flush): a power cut may bring the old content
 *   back, so recovery deletes nothing until a later publication is committed.
 * - it is neither: drift. Recovery deletes nothing, and puts nothing from staging in its place, which may never have become durable; the
 *   next publication heals a torn target as well.
 * - no record is intact: records are durable before an exchange, so there was no exchange; staging is a leftover.
 */
export function judge(seen: Seen): Judgement {
  const { names, exists, tree, staging, sharedStaging, parent, lasting } = seen
  const { torn } = seen.records
  const here = { parent, target: tree?.identity, lasting }
  const valid = seen.records.valid.map((record) =>
    describes(record, tree) ? { ...record, trusted: isTrustedHere(record, here) } : record,
  )
  const [newest] = valid
  const standing = inForce(valid, tree)
  const [speaking] = standing
  const current = speaking && describes(speaking, tree) ? speaking : undefined
  const record = speaking ?? newest
  const recorded = isRecorded(valid, tree)
  const staged = staging.map((random) => names.staging(random))
  const gone = [...torn, ...sequencesOf(superseded(valid, standing, current))]
  const kept = sequencesOf(valid.filter((record) => record !== current && !gone.includes(record.sequence)))
  const inOrder = (sequences: number[]): string[] => sequences.sort((a, b) => a - b).map(names.record)
  const nextOne = nextSequence(seen.records)
  if (!isKnown(seen, valid, standing, current)) {
    // Leftovers need another publication to clear them: so the content counts as not durable, whichever record vouches for it.
    const doubted = current && { ...current, trusted: false }
    const state = {
      exists,
      newest,
      tree,
      current: doubted,
      record: doubted ?? record,
      known: false,
      moved: false,
      recorded,
      nextSequence: nextOne,
    }
    return { ...state, removeNow: [], removeLater: [...staged, ...inOrder([...gone, ...kept])] }
  }
  const moved = current?.trusted === true && current.place.within !== seen.within
  const state = { exists, newest, tree, current, record, known: true, moved, recorded, nextSequence: nextOne }
  return {
    ...state,
    removeNow: [...(sharedStaging ? [] : staged), ...inOrder(gone)],
    removeLater: [...(sharedStaging ? staged : []), ...inOrder(kept)],
  }
}

/** Whether intact content is published again, only to make it durable. */
export function isRepeated(
  found: Judgement | undefined,
  desired: Tree,
): found is Judgement & { readonly current: StoredRecord } {
  return found?.current !== undefined && found.tree?.digest === desired.digest
}

/**
 * Whether the target needs no publication. A request with a pin always publishes, since the pin stands in a record. So does one that sets
 * mode and owner again where the record leaves them to the administrator; one that stops an interrupted removal; and one at a path whose
 * content moves to another.
 */
export function isSettled(
  found: Judgement,
  desired: Tree,
  { pin, attributes, movedTo }: Pick<PublicationOptions, 'pin' | 'attributes' | 'movedTo'>,
): boolean {
  const { current } = found
  if (pin !== undefined || !isRepeated(found, desired) || current?.trusted !== true || current.removing) return false
  if (movedTo === null && current.movedTo !== undefined) return false
  return attributes === 'keep' || current.after === desired.digest
}

/** What a publication answers. */
export function resultOf(
  path: string,
  outcome: Outcome,
  desired: Tree,
  found: Judgement | undefined,
  { proven }: Mount,
  options: { readonly adopt?: Adopting },
): ReplaceResult {
  return {
    outcome,
    path,
    // As the record names it.
    digest: (outcome === 'unchanged' ? found?.current?.after : undefined) ?? desired.digest,
    sequence: (outcome === 'unchanged' ? found?.current?.sequence : found?.nextSequence) ?? 0,
    ...(proven ? {} : { unproven: true as const }),
    ...(outcome !== 'unchanged' &&
      isKnownToConsumers(found, desired, options) && { pendingHooks: [...hooksOf(found, desired, options)] }),
  }
}

/** The hooks that are to run: those that ran for content that is only repeated do not run again, since its consumers know it. */
export function hooksOf(
  found: Judgement | undefined,
  desired: Tree,
  options: { readonly adopt?: Adopting },
  asked: readonly string[] = [],
): readonly string[] {
  if (!isKnownToConsumers(found, desired, options)) return asked
  return isRepeated(found, desired) ? found.current.pendingHooks : []
}

/** Content that this publication only repeats, or takes over unchanged. */
function isKnownToConsumers(
  found: Judgement | undefined,
  desired: Tree,
  { adopt }: { readonly adopt?: Adopting },
): boolean {
  if (isRepeated(found, desired)) return true
  return (
    adopt !== undefined && found?.recorded === false && found.tree !== undefined && isSameContent(found.tree, desired)
  )
}

/** Records that say nothing any more: all but the current one; where the target has drifted, only those that were aborted. */
function superseded(
  valid: readonly StoredRecord[],
  standing: readonly StoredRecord[],
  current: StoredRecord | undefined,
): StoredRecord[] {
  return valid.filter((record) => (current ? record !== current : !standing.includes(record)))
}

/**
 * Whether the content of the target is known to be durable: it is the newest record's `after`, or the content before an aborted
 * publication, and no older publication's durability is still in doubt. A target without a tree is no missing target; its form is broken.
 */
function isKnown(
  { exists, tree }: Seen,
  valid: readonly StoredRecord[],
  standing: readonly StoredRecord[],
  current: StoredRecord | undefined,
): boolean {
  // A power cut may undo the rename of a removal, which took the whole content away.
  if (valid.length > 0 && tree === undefined && (exists || valid.some(({ removing }) => removing))) return false
  if (standing.length > 0 && standing.length === valid.length) return current?.trusted === true
  return standing.every(({ trusted }) => trusted)
}

function sequencesOf(records: readonly StoredRecord[]): number[] {
  return records.map(({ sequence }) => sequence)
}
