import { type Disk, namesFor } from '../../durable/index.js'
import type { Descriptor } from '../../durable/file-system.js'
import type { Log } from '../../log.js'
import { revisionFamily } from '../names.js'
import { orphanedRecords } from '../install/orphaned-records.js'

/**
 * Names in the resource directory that commands which were killed have left: records of revisions that are not there, and what is
 * staged of revisions. What an exchange took out and is somebody else's gets another name first. To be called under the lock of
 * the pod's operations.
 */
export async function leftoversOf(
  disk: Disk,
  parent: Descriptor,
  pod: string,
  /** The newest revision that anybody could have begun. */
  newest: number,
  /** Of the directory, for messages. */
  path: string,
  log: Log,
): Promise<string[]> {
  const staged = await disk.stagedLeftovers(parent, path, namesFor('', revisionFamily(pod)), log)
  return [...(await orphanedRecords(disk.fs, parent, pod, newest)), ...staged]
}
