import { letGoSince } from './keeper.js'
import { type Identity, isSame, tellBirths, type Tree } from '../path/index.js'
import { describes, type Described, type StoredRecord } from './record.js'

/*
 * Which record speaks of what a target holds. A record is written before the exchange of its publication, so the newest record may be of
 * a publication that was aborted. What the target holds does not tell: another program can put any earlier content back. These tell:
 *
 * - the mark of the commit. It is appended without fsync, so a power cut can take it away: where it is absent, nothing follows.
 * - the inode at the target, with the time of its birth, since ext4 gives the number of a removed inode out again at once. A record names
 *   the inode that its publication staged, and the inode that the publication found: the exchange has come, or it has not.
 *
 * A publication counts as aborted only where that is proven. Otherwise its record speaks, and earlier content that came back is drift.
 */

type Speaking = Described & Pick<StoredRecord, 'before' | 'committed' | 'place'>
type Present = Pick<Tree, 'digest' | 'entries' | 'identity'> | undefined

/** Those of these records, newest first, that were not aborted before their exchange: the first one speaks. */
export function inForce<Record extends Speaking>(records: readonly Record[], tree: Present): readonly Record[] {
  const first = records.findIndex((record, index) => !isAborted(record, records.slice(index + 1), tree))
  return first === -1 ? [] : records.slice(first)
}

/**
 * The record of a target's content; where that has drifted, of the content before. `newest`: of these records; it speaks where all of their
 * publications were aborted.
 */
export function recordFor<Record extends Speaking>(newest: Record, records: readonly Record[], tree: Present): Record {
  return inForce(records, tree)[0] ?? newest
}

/**
 * Whether what the disk holds is ours by one of these records, newest first, or has drifted from it. A record may be of a publication that
 * was aborted before its exchange: what that found is not ours by it. Nor is what became of a target that was let go.
 */
export function isRecorded(
  records: readonly (Speaking & Pick<StoredRecord, 'owned' | 'letGo' | 'publishedAt'>)[],
  tree: Present,
): boolean {
  const [newest] = records
  if (newest === undefined || records.some((record) => describes(record, tree))) return newest !== undefined
  if (letGoSince(recordFor(newest, records, tree)) !== undefined) return false
  return records.some((record) => record.owned || record.committed || isIn(record, tree))
}

function isAborted(record: Speaking, older: readonly Speaking[], tree: Present): boolean {
  if (record.committed || isIn(record, tree)) return false
  if (record.before === null && tree === undefined) return true
  if (isBefore(record, tree)) return true
  for (const one of older) {
    if (isIn(one, tree)) return true
    // Its exchange was durable: nothing of before it can have come back by a power cut.
    if (one.committed) return false
    if (isBefore(one, tree)) return true
  }
  return false
}

/** Whether the inode that this publication staged is at the target. */
function isIn(record: Speaking, tree: Present): boolean {
  return isVery(record.place.target, tree, () => describes(record, tree))
}

/** Whether the inode that this publication found is at the target. */
function isBefore(record: Speaking, tree: Present): boolean {
  return isVery(record.place.replaced, tree, () => record.before === tree?.digest)
}

/** A number alone may have been given to another inode since: then the content has to be the same, too. */
function isVery(recorded: Identity | undefined, tree: Present, isSameContent: () => boolean): boolean {
  const found = tree?.identity
  if (recorded === undefined || found === undefined || !isSame(recorded, found)) return false
  return tellBirths(recorded, found) || isSameContent()
}
