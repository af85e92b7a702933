import { silent } from '../../log.js'
import { wrapped } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import { TargetSnapshot } from '../look/index.js'
import { checkTarget, type Tree } from '../path/index.js'
import {
  refuseTargetBelow,
  nothingPublished,
  renamedMeanwhile,
  syncRecord,
  supersedeRecord,
  withLockedTarget,
} from '../target/index.js'
import { type RecordBody, type StoredRecord, nextSequence } from '../record/index.js'
import type { HoldOptions } from '../types.js'

/* Writes an operator's or a relocation's word on a target durably, without publishing: in a new record of the present content. */

/** What the caller does, for people. */
interface Doing {
  /** As an error begins: `could not hold PATH`. */
  readonly problem: string
  /** The verb of a second attempt, for the advice. */
  readonly verb: string
}

/**
 * Writes the record of a published target again, durably. The content is neither read into memory as a whole nor touched. `change`: its new
 * body; undefined: the record says so already, and gets a sync. Answers the record before.
 * @throws DurableWriteError: holdfast has published nothing there (ENOENT), another process publishes (Busy), or the system's error: then a
 *   power cut may leave either record
 */
export async function rewriteRecord(
  fs: FileSystem,
  path: string,
  { problem, verb }: Doing,
  change: (record: StoredRecord, tree: Tree | undefined) => RecordBody | undefined,
  { log = silent, ...options }: HoldOptions,
): Promise<StoredRecord> {
  const target = checkTarget(path)
  const renamed = () => renamedMeanwhile(target, problem, verb)
  const rewriting = withLockedTarget(fs, target, options, async ({ site, records }) => {
    const { name, names, parent } = site
    const { directory } = parent
    const seen = new TargetSnapshot(fs, target, directory, name, records.valid)
    const record = await seen.record()
    if (record === undefined) throw nothingPublished(target)
    const tree = await seen.tree()
    await refuseTargetBelow({ fs, path: target, parent: directory, name }, tree)
    const body = change(record, tree)
    if (body === undefined) await syncRecord(site, names.record(record.sequence), renamed)
    else await supersedeRecord(site, nextSequence(records), body, record, log, renamed)
    return record
  })
  return wrapped(target, problem, rewriting)
}
