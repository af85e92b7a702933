import type { Descriptor, FileSystem } from './file-system.js'
import { namesFor } from './names.js'
import { readRecords, type StoredRecord } from './record.js'
import { checkTarget } from './request.js'
import { resolve } from './resolve.js'
import { Scope } from './scope.js'

/** Hands over a target's parent and records, without a lock; undefined where the parent does not exist. */
export async function withRecord<T>(
  fs: FileSystem,
  target: string,
  use: (parent: Descriptor, name: string, records: readonly StoredRecord[], missed: boolean) => Promise<T | undefined>,
): Promise<T | undefined> {
  const scope = new Scope(fs)
  try {
    const place = await resolve(scope, checkTarget(target))
    if (place.missing.length > 0) return undefined
    const records = await readRecords(fs, place.anchor, place.name, namesFor(place.name))
    return await use(place.anchor, place.name, records.valid, records.missed)
  } finally {
    await scope.closeAll()
  }
}
