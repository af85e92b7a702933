import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import {
  dataLink,
  lock,
  namesFor,
  type Place,
  type Scope,
  inTree,
  entriesBelow,
  metadataOf,
  accessAttribute,
  namedIn,
} from '../path/index.js'
import { letGoSince, letGoText, readRecords, type RecordKind, type Records } from '../record/index.js'
import { openTarget, refuseDecrypted, refuseOtherThanDirectory } from '../target/index.js'
import { publicationIn } from './inspect.js'
import { TargetSnapshot } from './snapshot.js'

/* What a publication would meet at a directory's path, for a command that looks before the first publication. */

export interface FoundTarget {
  readonly records: Records
  /** Of the entry at the path; undefined: there is none. */
  readonly attributes?: Attributes
  /** Why no publication can replace it. */
  readonly refusal?: unknown
  /** The directory, open until the scope ends. */
  readonly opened?: Descriptor
  /** Whether the directory holds anything. */
  readonly isEmpty?: boolean
  /** By its newest record, or by its links. */
  readonly form?: RecordKind
  /** An agent has let the directory go, and another program has changed it since: the beginning of a sentence about `it`. */
  readonly changedSince?: string | undefined
}

/**
 * Takes a target's lock if its file exists, until the scope ends; makes none.
 * @throws DurableWriteError, with the reason Busy where another process holds the lock for longer than `timeout` (ms)
 */
export async function lockAt(
  scope: Scope,
  { anchor, name, target }: Place,
  parent: Attributes,
  limits: { readonly timeout: number; readonly signal: AbortSignal },
): Promise<void> {
  const file = namesFor(name).lock
  if ((await scope.fs.look(anchor, file)) === undefined) return
  await lock(scope, { parent: { directory: anchor, attributes: parent }, name: file, target, ...limits })
}

/** What stands at a place whose parent exists. Writes nothing. @throws what the file system throws */
export async function findTarget(scope: Scope, place: Place, parent: Attributes): Promise<FoundTarget> {
  const { fs } = scope
  const { anchor, name, target } = place
  const records = await readRecords(fs, anchor, name, namesFor(name))
  const attributes = await fs.look(anchor, name)
  if (attributes === undefined) return { records }
  const [newest] = records.valid
  let opened: Descriptor
  try {
    refuseOtherThanDirectory(target, attributes)
    const found = await openTarget(scope, target, { directory: anchor, attributes: parent }, name)
    opened = found.opened
    // That form makes its content in the target.
    const { flags } = found.attributes
    if (newest?.kind !== 'symlink') refuseDecrypted(target, { entries: [{ path: '', flags }] }, parent)
  } catch (refusal) {
    return { records, refusal }
  }
  const isEmpty = (await fs.list(opened)).length === 0
  const linked = (await fs.look(opened, dataLink))?.type === 'symlink'
  const form = newest?.kind ?? (linked ? 'symlink' : 'exchange')
  const since = newest && letGoSince(newest)
  const isChanged = since !== undefined && !(await isAsPublished(fs, place, records))
  const changedSince = isChanged ? `${letGoText('it', since)} and has changed since` : undefined
  return { records, attributes, opened, isEmpty, form, changedSince }
}

async function isAsPublished(fs: FileSystem, { target, anchor, name }: Place, { valid }: Records): Promise<boolean> {
  const state = (await publicationIn(new TargetSnapshot(fs, target, anchor, name, valid)))?.state
  return state !== undefined && state.differences.length === 0
}

/** The files of a directory that their mode keeps to their owner, and whom an ACL lets in all the same. */
export async function openedByLists(
  fs: FileSystem,
  root: Descriptor,
): Promise<{ readonly path: string; readonly named: readonly string[] }[]> {
  const found: { path: string; named: readonly string[] }[] = []
  await inTree(fs, root, async (directories) => {
    for await (const { path, type } of entriesBelow(directories)) {
      if (type !== 'file') continue
      const { mode, extended } = await directories.useFile(path, (file) => metadataOf(fs, file))
      const list = extended?.get(accessAttribute)
      const named = list === undefined || (mode & 0o077) !== 0 ? [] : namedIn(list)
      if (named.length > 0) found.push({ path, named })
    }
  })
  return found
}
