import type { Mount } from '../file-system.js'
import { type TargetNames, type Identity, isTrustedHere, type Tree } from '../path/index.js'
import { describes, type StoredRecord } from './record.js'
import { nextSequence, type Records } from './record-files.js'
import { inForce, isRecorded } from './speaking-record.js'
import { isSameContent } from './taken-over.js'
import type { Adopting, Outcome, PublicationOptions, ReplaceResult } from '../types.js'

/** What was seen of a target and beside it, under its lock. */
export interface Seen {
  readonly names: TargetNames
  /** Whether there is a target at all. */
  readonly exists: boolean
  /** What it holds; undefined where it does not exist, or its form is broken. */
  readonly tree: Tree | undefined
  readonly records: Records
  /** Random parts of the staging names that hold what is this program's own. */
  readonly staging: readonly string[]
  /** The directory that holds it, and its place in the file system. */
  readonly parent: Identity
  readonly within: string
  /** Numbers of inodes stay what they are over a reboot, as on ext4, xfs and btrfs. */
  readonly lasting: boolean
  /** Staging names are shared with other targets, of whose durability the records of this one say nothing. */
  readonly sharedStaging: boolean
}

/** What a predecessor left, and what is to be done about it. */
export interface Judgement {
  /** Whether there is a target at all, whatever it holds. */
  readonly exists: boolean
  /** The newest intact record, whether it is of what the target holds or not. */
  readonly newest: StoredRecord | undefined
  readonly tree: Tree | undefined
  /** The record of what the target holds now, if there is one. */
  readonly current: StoredRecord | undefined
  /** The same; where it has drifted, the record of what it drifted from. */
  readonly record: StoredRecord | undefined
  /** What is there is known to be durable, be it by another record than its own, or the absence of a target. */
  readonly known: boolean
  /** It is known to be durable, as the record says, but its ancestors may not be: the record tells of another place. */
  readonly moved: boolean
  /** Whether what is there was published by this program, or has drifted from that: not somebody else's. */
  readonly recorded: boolean
  readonly nextSequence: number
  /** Names beside the target that can be removed at once. */
  readonly removeNow: readonly string[]
  /** Names beside the target that may be removed only once the next publication is committed. */
  readonly removeLater: readonly string[]
}

/**
 * Decides what a predecessor left; only names of this target's own form. What the target holds is one of these:
 *
 * - it is the newest record's `after`, known durable: the publication was complete; the rest is left over.
 * - it is, by its inode, what the newest record's publication found, and that is known durable: that publication was aborted before the
 *   exchange. Content that only equals it is drift: see speaking-record.ts.
 * - it is either, but not known durable (killed between exchange and commit, or a failed flush): the old content may
 *   be what a power cut brings back, so nothing is deleted until a later publication is committed.
 * - it is neither: drift. Nothing is deleted, and nothing that staging holds takes its place: whether that was ever made
 *   durable is not known, and what is published next heals a torn target as well.
 * - no record is intact: records are durable before an exchange, so there was none; staging is left over.
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
    // Only another publication can clear up what is left: so what is there counts as not durable, whatever its record says.
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
  const moved = current?.trusted === true && current.place?.within !== seen.within
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
 * Whether nothing need be published. A pin stands in a record: who asks for one always publishes. So does mode and owner that its own
 * record does not name, once they are the administrator's no more; and whoever publishes where a removal was interrupted has thought
 * better of it, or for its own sake what moves to another path.
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

/** What is only repeated, or was taken over as it is. */
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
 * Whether the target is what it is known to be, durably: the newest record's `after`, or what that found where it was aborted,
 * and no older publication's durability is still in doubt. A target without a tree is no missing target; its form is broken.
 */
function isKnown(
  { exists, tree }: Seen,
  valid: readonly StoredRecord[],
  standing: readonly StoredRecord[],
  current: StoredRecord | undefined,
): boolean {
  // What a removal has renamed may come back, and what it is renamed to is all of it.
  if (valid.length > 0 && tree === undefined && (exists || valid.some(({ removing }) => removing))) return false
  if (standing.length > 0 && standing.length === valid.length) return current?.trusted === true
  return standing.every(({ trusted }) => trusted)
}

function sequencesOf(records: readonly StoredRecord[]): number[] {
  return records.map(({ sequence }) => sequence)
}
