import { type Log } from '../../log.js'
import { fsyncAll, attempt, remove, setMetadata, settle } from '../path/index.js'
import { DurableWriteError } from '../errors.js'
import type { Descriptor } from '../file-system.js'
import { encoded, type RecordBody, type StoredRecord } from '../record/index.js'
import type { Site } from './site.js'

/* A new record of the published content, in the place of the present one. */

/**
 * Writes a new record of the published content, beside the older one, durably. A failure removes it again. `renamed`: the error where a
 * directory above was renamed meanwhile. `also`: descriptors to sync with it.
 */
export async function writeRecord(
  site: Site,
  name: string,
  content: Uint8Array,
  log: Log,
  renamed: () => DurableWriteError,
  also: readonly Descriptor[] = [],
): Promise<void> {
  const { scope, path } = site
  const { fs } = scope
  const { directory } = site.parent
  let written = false
  let synced = false
  try {
    const file = await scope.keep(fs.createFile(directory, name))
    written = true
    await fs.write(file, content)
    await setMetadata(fs, file, { target: name, mode: 0o600 })
    await syncInPlace(site, file, also)
    synced = true
    if (!(await site.isInPlace())) throw renamed()
  } catch (error) {
    // A record whose fsync failed may not reach the disk, so remove it: the older record stays true.
    const takeBack = async () => {
      await remove(fs, directory, name)
      if (synced) await fsyncAll(fs, [directory])
    }
    if (written) await attempt(log, path, 'could not remove the new record', takeBack)
    throw error
  }
}

/** Removes the record that this one supersedes, once it is written. */
export async function supersedeRecord(
  site: Site,
  sequence: number,
  body: RecordBody,
  older: StoredRecord,
  log: Log,
  renamed: () => DurableWriteError,
): Promise<void> {
  const { names, path, scope } = site
  await writeRecord(site, names.record(sequence), encoded(body, older), log, renamed)
  await attempt(log, path, 'could not remove the older record', () =>
    remove(scope.fs, site.parent.directory, names.record(older.sequence)),
  )
}

/** Syncs a record, its directory and all above it, and fails where the file system has shut down. */
async function syncInPlace(site: Site, file: Descriptor, also: readonly Descriptor[] = []): Promise<void> {
  const { fs } = site.scope
  const { directory } = site.parent
  await settle({ fs, parent: directory, names: site.names }, [file, directory, ...also, ...(await site.ancestors())])
}

/** The writer may have died before the fsync, so sync the record before believing it. */
export async function syncRecord(site: Site, name: string, renamed: () => DurableWriteError): Promise<void> {
  const { scope, parent } = site
  const file = await scope.keep(scope.fs.openFile(parent.directory, name))
  await syncInPlace(site, file)
  if (!(await site.isInPlace())) throw renamed()
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
