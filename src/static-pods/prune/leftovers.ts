import { type DurableCalls, namedRecords, namesFor } from '../../durable/index.js'
import type { Descriptor } from '../../durable/file-system.js'
import type { Log } from '../../log.js'
import { revisionFamily, revisionName, revisionOf } from '../names.js'

/**
 * Names in the resource directory that killed commands have left: records of missing revisions, and staging entries of
 * revisions. An exchange may have taken out another program's files: these get another name first. Call it under the lock of the
 * pod's operations.
 */
export async function leftoversOf(
  durable: DurableCalls,
  parent: Descriptor,
  pod: string,
  /** The newest revision that any installer could have begun. */
  newest: number,
  /** Of the directory, for messages. */
  path: string,
  log: Log,
): Promise<string[]> {
  const staged = await durable.stagedLeftovers(parent, path, namesFor('', revisionFamily(pod)), log)
  return [...(await orphanedRecords(durable, parent, pod, newest)), ...staged]
}

/*
 * Publication records without their revision: an installation was killed before its revision was visible, and never ran again, or
 * a prune was killed. A whole record names its revision. The digest in its name tells which revision a torn one belongs to, for
 * revisions near the present ones.
 */

/** How far back a torn record is recognised. */
const window = 1000

/** Names of such records in the directory. To be called under the lock of the pod's operations. */
export async function orphanedRecords(
  durable: DurableCalls,
  directory: Descriptor,
  pod: string,
  /** The newest revision that any installer could have begun. */
  newest: number,
): Promise<string[]> {
  const present = new Set(await durable.fs.list(directory))
  const orphans: string[] = []
  let byId: Map<string, string> | undefined
  for (const { entry, name: named } of await namedRecords(durable.fs, directory)) {
    const id = entry.slice(0, entry.lastIndexOf('.'))
    const name = named ?? (byId ??= namesById(pod, newest)).get(id)
    if (name === undefined || revisionOf(pod, name) === undefined) continue
    if (!present.has(name) && namesFor(name).sequenceOf(entry) !== undefined) orphans.push(entry)
  }
  return orphans
}

function namesById(pod: string, newest: number): Map<string, string> {
  const names = new Map<string, string>()
  for (let revision = Math.max(0, newest - window); revision <= newest; revision++) {
    const name = revisionName(pod, revision)
    names.set(namesFor(name).lock.replace(/\.lock$/, ''), name)
  }
  return names
}
