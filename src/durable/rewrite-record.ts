import { silent, type Log } from '../log.js'
import { probeJournal, fsyncAll } from './barrier.js'
import { DurableWriteError, unfit, wrapError } from './errors.js'
import type { Descriptor, FileSystem } from './file-system.js'
import { readTarget } from './inspect.js'
import { lock } from './lock.js'
import { namesFor } from './names.js'
import { encodeAppendix, encodeRecord, type RecordBody, recordBody, recordFor, type StoredRecord } from './record.js'
import { nextSequence, readRecords } from './record-files.js'
import { refuseNewer } from './refusals.js'
import { attempt, remove } from './remove.js'
import { checkTarget } from './request.js'
import { Scope } from './scope.js'
import { Parents, Site } from './site.js'
import { setMetadata } from './stage.js'
import type { Tree } from './tree.js'

/* What an operator or a relocation says of a target, durably, without publishing: a new record of what is published. */

export interface HoldOptions {
  /** Milliseconds to wait for another holder of the lock; default 0. */
  readonly lockTimeout?: number
  /** Refuses file systems on which durability is not proven; default false. */
  readonly requireProven?: boolean
  readonly signal?: AbortSignal
  readonly log?: Log
}

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

/** `body`, with what has been added since to the record that it is made from. */
export function encoded(body: RecordBody, { committed }: Pick<StoredRecord, 'committed'>): Uint8Array {
  return Buffer.concat([encodeRecord(body), ...(committed ? [encodeAppendix({ settled: true })] : [])])
}

/**
 * Writes a new record of what is published already, beside the older one, durably. What fails is taken back. `renamed`: the error where
 * a directory above was renamed meanwhile. `also`: what is synced with it.
 */
export async function writeRecord(
  site: Site,
  found: Parents,
  name: string,
  content: Uint8Array,
  log: Log,
  renamed: () => DurableWriteError,
  also: readonly Descriptor[] = [],
): Promise<void> {
  const { scope, names, path } = site
  const { fs } = scope
  const { directory } = site.parent
  let written = false
  let synced = false
  try {
    const file = await scope.keep(fs.createFile(directory, name))
    written = true
    await fs.write(file, content)
    await setMetadata(fs, file, { target: name, mode: 0o600 })
    await fsyncAll(fs, [file, directory, ...also, ...(await site.ancestors())])
    await probeJournal(fs, directory, names)
    synced = true
    if (!(await site.isInPlace(found))) throw renamed()
  } catch (error) {
    // What a failed fsync leaves is neither believed nor left for a reader: the older record stands for what was true before.
    const takeBack = async () => {
      await remove(fs, directory, name)
      if (synced) await fsyncAll(fs, [directory])
    }
    if (written) await attempt(log, path, 'could not remove the new record', takeBack)
    throw error
  }
}

/** Who wrote it may have been killed before it was durable: what it says is true only once it is. */
async function syncRecord(site: Site, found: Parents, name: string, renamed: () => DurableWriteError): Promise<void> {
  const { scope, names } = site
  const { directory } = site.parent
  const file = await scope.keep(scope.fs.openFile(directory, name))
  await fsyncAll(scope.fs, [file, directory, ...(await site.ancestors())])
  await probeJournal(scope.fs, directory, names)
  if (!(await site.isInPlace(found))) throw renamed()
}

/** The record that was written is removed again: the one before it stands. */
export function renamedMeanwhile(path: string, doing: string, verb: string): DurableWriteError {
  return new DurableWriteError(`${doing}: a directory above it was renamed or removed meanwhile`, {
    code: 'ESTALE',
    syscall: 'openat2',
    path,
    state: 'its record in that directory, wherever it is now, is what it was',
    advice: `${verb} it again`,
  })
}

export function nothingPublished(path: string): DurableWriteError {
  return unfit(`holdfast has published nothing at ${path}: there is no record beside it`, {
    code: 'ENOENT',
    syscall: 'open',
    path,
    advice: 'name a directory or file that holdfast publishes (holdfast status lists them)',
  })
}

/**
 * Before a lock is made: throws where there is none, nor anything that a publication leaves. A lock that stays beside a mistyped path, or
 * in a bare mount point, would say that a target was there.
 */
export async function refuseUnknown({ scope: { fs }, path, name, names, parent }: Site): Promise<void> {
  const { directory } = parent
  if ((await fs.look(directory, names.lock)) !== undefined) return
  const { valid, torn, newer, staging, generations } = await readRecords(fs, directory, name, names)
  if ([valid, torn, newer, staging, generations].every(({ length }) => length === 0)) throw nothingPublished(path)
}
