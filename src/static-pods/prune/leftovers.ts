import { type Disk, namesFor } from '../../durable/index.js'
import type { Descriptor } from '../../durable/file-system.js'
import type { Log } from '../../log.js'
import { revisionFamily } from '../names.js'
import { orphanedRecords } from '../install/orphaned-records.js'

/**
 * Names in the resource directory that killed commands have left: records of missing revisions, and staging entries of
 * revisions. An exchange may have taken out another program's files: these get another name first. Call it under the lock of the
 * pod's operations.
 */
export async function leftoversOf(
  disk: Disk,
  parent: Descriptor,
  pod: string,
  /** The newest revision that any installer could have begun. */
  newest: number,
  /** Of the directory, for messages. */
  path: string,
  log: Log,
): Promise<string[]> {
  const staged = await disk.stagedLeftovers(parent, path, namesFor('', revisionFamily(pod)), log)
  return [...(await orphanedRecords(disk, parent, pod, newest)), ...staged]
}
