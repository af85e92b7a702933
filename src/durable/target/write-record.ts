import { type Log } from '../../log.js'
import { probeJournal, fsyncAll, attempt, remove, setMetadata } from '../path/index.js'
import { DurableWriteError } from '../errors.js'
import type { Descriptor } from '../file-system.js'
import { encodeAppendix, encodeRecord, type RecordBody, type StoredRecord } from '../record/index.js'
import type { Parents, Site } from './site.js'

/* A new record of what is published already, in the place of the one that is there. */

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
export async function syncRecord(
  site: Site,
  found: Parents,
  name: string,
  renamed: () => DurableWriteError,
): Promise<void> {
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
