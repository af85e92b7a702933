import { namesFor, quarantineForeign, readAllRecords } from '../../durable/index.js'
import type { Descriptor, FileSystem } from '../../durable/file-system.js'
import type { Log } from '../../log.js'
import { revisionFamily } from '../names.js'
import { orphanedRecords } from '../install/orphaned-records.js'

/**
 * Names in the resource directory that commands which were killed have left: records of revisions that are not there, and what is
 * staged of revisions. What an exchange took out and is somebody else's gets another name first. To be called under the lock of
 * the pod's operations.
 */
export async function leftoversOf(
  fs: FileSystem,
  parent: Descriptor,
  pod: string,
  /** The newest revision that anybody could have begun. */
  newest: number,
  /** Of the directory, for messages. */
  path: string,
  log: Log,
): Promise<string[]> {
  const names = namesFor('', revisionFamily(pod))
  const entries = await fs.list(parent)
  const staging = entries.flatMap((name) => names.stagingOf(name) ?? [])
  const quarantined = entries.flatMap((name) => names.quarantineOf(name) ?? [])
  const own =
    staging.length === 0
      ? []
      : await quarantineForeign(
          { fs, parent, path, names, log },
          staging,
          quarantined,
          await readAllRecords(fs, parent),
        )
  return [...(await orphanedRecords(fs, parent, pod, newest)), ...own.map(names.staging)]
}
