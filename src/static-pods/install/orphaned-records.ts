/*
 * Publication records without their revision: an installation was killed before its revision was visible, and never ran again, or
 * a prune was killed. A whole record names its revision. The digest in its name tells which revision a torn one belongs to, for
 * revisions near the present ones.
 */
import { namesFor, readWhole } from '../../durable/index.js'
import type { Descriptor, FileSystem } from '../../durable/file-system.js'
import { asMap, asText } from '../json.js'
import { revisionName, revisionOf } from '../names.js'

/** How far back a torn record is recognised. */
const window = 1000

const recordPattern = /^\.holdfast-[0-9a-f]{16}\.[1-9][0-9]{0,14}$/

/** Names of such records in the directory. To be called under the lock of the pod's operations. */
export async function orphanedRecords(
  fs: FileSystem,
  directory: Descriptor,
  pod: string,
  /** The newest revision that any installer could have begun. */
  newest: number,
): Promise<string[]> {
  const entries = await fs.list(directory)
  const present = new Set(entries)
  const orphans: string[] = []
  let byId: Map<string, string> | undefined
  for (const entry of entries.filter((name) => recordPattern.test(name))) {
    const id = entry.slice(0, entry.lastIndexOf('.'))
    const name = (await nameIn(fs, directory, entry)) ?? (byId ??= namesById(pod, newest)).get(id)
    if (name === undefined || revisionOf(pod, name) === undefined) continue
    if (!present.has(name) && namesFor(name).sequenceOf(entry) !== undefined) orphans.push(entry)
  }
  return orphans
}

/** The name that a record speaks of; undefined where it is torn. */
async function nameIn(fs: FileSystem, directory: Descriptor, entry: string): Promise<string | undefined> {
  const file = await fs.openFile(directory, entry)
  try {
    const [line = ''] = (await readWhole(fs, file)).toString('utf8').split('\n', 1)
    // A checksum and a space come first (src/durable/record/record.ts).
    return asText(asMap(JSON.parse(line.slice(65)) as unknown)?.name)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  } finally {
    await fs.close(file)
  }
}

function namesById(pod: string, newest: number): Map<string, string> {
  const names = new Map<string, string>()
  for (let revision = Math.max(0, newest - window); revision <= newest; revision++) {
    const name = revisionName(pod, revision)
    names.set(namesFor(name).lock.replace(/\.lock$/, ''), name)
  }
  return names
}
