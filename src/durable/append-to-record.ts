import { codeOf } from '../errors.js'
import type { Descriptor, FileSystem } from './file-system.js'
import { namesFor } from './names.js'
import { encodeAppendix } from './record.js'
import type { RecordedObject } from './types.js'
import { withRecord } from './with-record.js'

/*
 * Lines that are added to the record of what is published, without a lock: a publication in the same instant has a record of
 * its own.
 */

/** Appends to the record of this digest, if it is still the newest one; tells whether it was. */
async function append(fs: FileSystem, target: string, digest: string, line: Uint8Array): Promise<boolean> {
  const done = await withRecord(fs, target, async (parent, name, records) => {
    const record = records.find(({ after }) => after === digest)
    if (record === undefined) return false
    let file: Descriptor
    try {
      file = await fs.openAppend(parent, namesFor(name).record(record.sequence))
    } catch (error) {
      // A newer publication has just retired it.
      if (codeOf(error) === 'ENOENT') return false
      throw error
    }
    try {
      await fs.write(file, line)
    } finally {
      await fs.close(file)
    }
    return true
  })
  return done ?? false
}

/** Records that a hook has run for the publication with this digest. False where a newer one has taken its place. */
export async function completeHook(fs: FileSystem, target: string, digest: string, hook: string): Promise<boolean> {
  return append(fs, target, digest, encodeAppendix({ hook }))
}

/** Records newer versions of some of the objects, which gave the same content: no older ones are taken after a restart. */
export async function recordObjects(
  fs: FileSystem,
  target: string,
  digest: string,
  objects: readonly RecordedObject[],
): Promise<boolean> {
  return append(fs, target, digest, encodeAppendix({ objects }))
}
