import { silent } from '../log.js'
import { wrapError } from './errors.js'
import type { FileSystem } from './file-system.js'
import { encoded, type HoldOptions, nothingPublished, renamedMeanwhile, writeRecord } from './hold.js'
import { readTarget } from './inspect.js'
import { lock } from './lock.js'
import { namesFor } from './names.js'
import { describes, type RecordBody, type StoredRecord } from './record.js'
import { nextSequence, readRecords } from './record-files.js'
import { refuseNewer } from './refusals.js'
import { attempt, remove } from './remove.js'
import { checkTarget } from './request.js'
import { Scope } from './scope.js'
import { Parents, Site } from './site.js'

/* What a relocation says of a target, durably, without publishing: a new record of what is published. See hold.ts. */

/** What the caller does, for people. */
interface Doing {
  /** As an error begins: `could not hold PATH`. */
  readonly problem: string
  /** What is to be done to it again. */
  readonly verb: string
}

/**
 * Writes the record of a published target anew, durably. The content is neither read into memory as a whole nor touched. `change`: what it
 * is to say; undefined: it says that already. Answers the record that was found.
 * @throws DurableWriteError: nothing was published there (ENOENT), another process publishes (Busy), or what the system answers: then
 *   nobody knows which of the two a power cut leaves
 */
export async function rewriteRecord(
  fs: FileSystem,
  path: string,
  { problem, verb }: Doing,
  change: (record: StoredRecord) => RecordBody | undefined,
  { lockTimeout = 0, signal, log = silent }: HoldOptions,
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
    await site.open({})
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
    const record = records.valid.find((one) => describes(one, tree)) ?? newest
    const body = change(record)
    if (body === undefined) return record
    const name = names.record(nextSequence(records))
    await writeRecord(site, found, name, encoded(body, record), log, () => renamedMeanwhile(target, problem, verb))
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
