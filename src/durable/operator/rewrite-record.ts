import { silent } from '../../log.js'
import { wrapError } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import { readTarget } from '../look/index.js'
import { lock, namesFor, attempt, remove, checkTarget, Scope, type Tree } from '../path/index.js'
import {
  refuseTargetBelow,
  refuseNewer,
  Parents,
  Site,
  encoded,
  nothingPublished,
  refuseUnknown,
  renamedMeanwhile,
  syncRecord,
  writeRecord,
} from '../target/index.js'
import {
  type RecordBody,
  recordBody,
  type StoredRecord,
  recordFor,
  nextSequence,
  readRecords,
} from '../record/index.js'
import type { HoldOptions } from '../types.js'

/* What an operator or a relocation says of a target, durably, without publishing: a new record of what is published. */

/** What the caller does, for people. */
interface Doing {
  /** As an error begins: `could not hold PATH`. */
  readonly problem: string
  /** What is to be done to it again. */
  readonly verb: string
}

/**
 * Writes the record of a published target again, durably. The content is neither read into memory as a whole nor touched. `change`: what it
 * is to say; undefined: it says that already, and is made durable. Answers the record that was found.
 * @throws DurableWriteError: nothing was published there (ENOENT), another process publishes (Busy), or what the system answers: then
 *   nobody knows which of the two a power cut leaves
 */
export async function rewriteRecord(
  fs: FileSystem,
  path: string,
  { problem, verb }: Doing,
  change: (record: StoredRecord, tree: Tree | undefined) => RecordBody | undefined,
  { lockTimeout = 0, requireProven = false, signal, log = silent }: HoldOptions,
): Promise<StoredRecord> {
  const target = checkTarget(path)
  const scope = new Scope(fs)
  const parents = new Parents(fs)
  const found = new Parents(fs)
  const names = namesFor(target.slice(target.lastIndexOf('/') + 1))
  const site = new Site(scope, target, names)
  let leave: (() => void) | undefined
  try {
    if ((await site.resolve(parents)).missing.length > 0) throw nothingPublished(target)
    await site.open({ requireProven })
    await refuseUnknown(site)
    const { directory } = site.parent
    leave = await lock(scope, {
      parent: directory,
      name: names.lock,
      identity: site.identity,
      target,
      timeout: lockTimeout,
      signal,
    })
    const records = await readRecords(fs, directory, site.name, names)
    refuseNewer(target, records)
    const [newest] = records.valid
    if (newest === undefined) throw nothingPublished(target)
    const tree = await readTarget(fs, target, directory, site.name, newest.kind)
    await refuseTargetBelow({ fs, path: target, parent: directory, name: site.name }, tree)
    const record = recordFor(newest, records.valid, tree)
    const body = change(record, tree)
    const renamed = () => renamedMeanwhile(target, problem, verb)
    if (body === undefined) {
      await syncRecord(site, found, names.record(record.sequence), renamed)
      return record
    }
    const name = names.record(nextSequence(records))
    await writeRecord(site, found, name, encoded(body, record), log, renamed)
    await attempt(log, target, 'could not remove the older record', () =>
      remove(fs, directory, names.record(record.sequence)),
    )
    return record
  } catch (error) {
    throw wrapError(target, error, false, problem)
  } finally {
    await parents.close()
    await found.close()
    await scope.closeAll()
    leave?.()
  }
}

/** The same record, with just this of relocations. */
export function bodyWithMoves(record: StoredRecord, moves: Pick<RecordBody, 'relocation' | 'movedTo'>): RecordBody {
  const { hold, pin, removing } = record
  const others = Object.entries(record).filter(([field]) => field !== 'relocation' && field !== 'movedTo')
  const said = Object.fromEntries(others) as unknown as StoredRecord
  return recordBody({ ...said, ...moves }, { hold, pin, removing })
}
