import { join } from 'node:path'
import { nameOf, parentOf } from '../../relative-path.js'
import { DurableWriteError, unfit } from '../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import {
  currentDataDirectory,
  dataLink,
  keyLinks,
  mostOthers,
  topNames,
  metadataOf,
  type OpenDirectories,
  type FoundPlace,
  identityOf,
  isTrustedHere,
  checkTarget,
  ifThere,
  inScope,
  inTree,
  withOpen,
  type Tree,
  readWhole,
} from '../path/index.js'
import {
  agentOf,
  compare,
  letGoSince,
  digestBy,
  isInForce,
  isPinned,
  type RecordKind,
  type StoredRecord,
} from '../record/index.js'
import { openOffMounts } from '../target/index.js'
import { findRetired } from '../keep/index.js'
import { lookUntilQuiet, type TargetSnapshot, speakingRecord, typeOf, withSnapshot } from './snapshot.js'
import type { Hold, Pin, Publication } from '../types.js'

/* What holdfast published at a target, compared with the disk. */

/** What a record says without a look at the content. */
export interface RecordSaid {
  readonly form: RecordKind
  /** Which agent keeps the target; undefined: it names none. */
  readonly keeper: string | undefined
  /** An operator's hold that is in force, or his pin. */
  readonly hold: Hold | Pin | undefined
}

/** What the newest record says of the target, compared with the disk; undefined where nothing was ever published. */
export async function readPublication(fs: FileSystem, target: string): Promise<Publication | undefined> {
  return lookUntilQuiet(fs, target, async (seen) => {
    const state = (await publicationIn(seen))?.state
    return state && { state, quiet: state.differences.length === 0 }
  })
}

/** The state of a target, its records compared with the disk, and the record that fits it; undefined without any. */
export async function publicationIn(
  seen: TargetSnapshot,
): Promise<{ state: Publication; record: StoredRecord; tree: Tree | undefined; here: FoundPlace } | undefined> {
  const { fs, target, parent } = seen
  const record = await seen.record()
  if (record === undefined) return undefined
  const tree = await seen.tree()
  const here = {
    parent: identityOf(await fs.attributes(parent)),
    target: tree?.identity,
    lasting: !record.otherBoot || (await fs.mount(parent)).lasting,
  }
  const letGo = letGoSince(record)
  const state: Publication = {
    path: checkTarget(target),
    digest: record.after,
    sequence: record.sequence,
    actual: digestBy(record, tree),
    settled: record.trusted,
    durable: isTrustedHere(record, here),
    publishedAt: new Date(record.publishedAt),
    ...(isInForce(record.hold, fs.now()) && { hold: record.hold }),
    ...(isPinned(record.pin, fs.now()) && { pin: record.pin }),
    objects: [...record.objects],
    pendingHooks: [...record.pendingHooks],
    ...((await hasOldContent(seen)) && { retired: true as const }),
    ...(await oldestKept(seen, record)),
    ...(record.removing && { removing: true as const }),
    ...(letGo !== undefined && { letGo: new Date(letGo) }),
    ...(record.relocation && { relocation: record.relocation }),
    ...(record.movedTo !== undefined && { movedTo: record.movedTo }),
    differences: await differencesIn(seen, record, tree),
  }
  return { state, record, tree, here }
}

/** It stays for those who use it, or was too much to be removed at once. */
async function hasOldContent({ fs, parent, records }: TargetSnapshot): Promise<boolean> {
  if ((await findRetired({ fs, parent }, records)).length > 0) return true
  const name = records[0]?.staging?.name
  return name !== undefined && (await fs.look(parent, name)) !== undefined
}

/** Where something of another kind stands at the target, that alone. */
async function differencesIn(
  seen: TargetSnapshot,
  record: StoredRecord,
  tree: Tree | undefined,
): Promise<Publication['differences']> {
  const { fs, parent, name } = seen
  const found = tree === undefined ? await fs.look(parent, name) : undefined
  if (found !== undefined && found.type !== typeOf(record.kind)) return [{ path: '.', problem: 'type' }]
  return [...compare(record, tree), ...(await formDifferences(seen, record))]
}

/** They go in the order in which they came. */
async function oldestKept(
  { fs, parent }: TargetSnapshot,
  { history }: StoredRecord,
): Promise<Pick<Publication, 'pastSince'>> {
  for (const { name, replacedAt } of history?.generations.toReversed() ?? []) {
    if ((await fs.look(parent, name)) !== undefined) return { pastSince: new Date(replacedAt) }
  }
  return {}
}

/** The parts of a symlink directory, on the way of its consumers, that differ from its form. */
export async function formDifferences(
  { fs, parent, name }: TargetSnapshot,
  record: StoredRecord,
): Promise<Publication['differences']> {
  if (record.kind !== 'symlink' || (await fs.look(parent, name))?.type !== 'directory') return []
  return withOpen(fs, fs.openDirectory(parent, name), async (target) => {
    const differences: Publication['differences'] = []
    const root = record.entries.find(({ path }) => path === '')
    const { mode, uid, gid } = await metadataOf(fs, target)
    const kept = record.keepsAttributes === true
    if (kept) {
      // They are the administrator's.
    } else if (root && root.mode !== mode) differences.push({ path: '.', problem: 'mode' })
    else if (root && (root.uid !== uid || root.gid !== gid)) differences.push({ path: '.', problem: 'owner' })
    const dataDirectory = await currentDataDirectory(fs, target)
    if (dataDirectory === undefined) differences.push({ path: dataLink, problem: 'missing' })
    const names = topNames(record.entries.map(({ path }) => path))
    const links = await keyLinks(fs, target, names)
    for (const link of names) if (!links.has(link)) differences.push({ path: link, problem: 'missing' })
    const known = new Set([...names, dataLink, dataDirectory])
    const most = known.size + mostOthers
    const found = await fs.list(target, most + 1)
    for (const entry of found.slice(0, most)) {
      if (!known.has(entry)) differences.push({ path: entry, problem: 'unexpected' })
    }
    if (found.length > most) differences.push({ path: '.', problem: 'more' })
    return differences
  })
}

/** What the record that speaks for a target says of it: see RecordSaid. */
export async function readRecord(fs: FileSystem, target: string): Promise<RecordSaid | undefined> {
  const found = await speakingRecord(fs, target)
  if (found === undefined) return undefined
  const { kind, hold, pin } = found
  const pinned = isPinned(pin, fs.now()) ? pin : undefined
  return { form: kind, keeper: agentOf(found), hold: isInForce(hold, fs.now()) ? hold : pinned }
}

/** The named files of a published directory, from the disk; leaves out those that have gone. `largest`: bytes of one of them. */
export async function readPublishedFiles(
  fs: FileSystem,
  target: string,
  paths: readonly string[],
  largest = Infinity,
): Promise<Record<string, { content: Uint8Array; mode: number }>> {
  // Without a prototype: `__proto__` is a name like another.
  const files = Object.create(null) as Record<string, { content: Uint8Array; mode: number }>
  await withSnapshot(fs, target, async ({ parent, name, records: [newest] }) => {
    if ((await fs.look(parent, name))?.type !== 'directory') return
    await inScope(fs, async (scope) => {
      const root = await scope.keep(openOffMounts(fs, target, parent, name))
      const dataDirectory = newest?.kind === 'symlink' ? await currentDataDirectory(fs, root) : undefined
      const content = dataDirectory === undefined ? root : await scope.keep(fs.openDirectory(root, dataDirectory))
      await inTree(fs, content, async (directories) => {
        for (const path of paths) {
          const file = await readInside(directories, path, (size) => {
            if (size > largest) throw tooLarge(join(target, path), largest)
          })
          if (file) files[path] = file
        }
      })
    })
  })
  return files
}

function tooLarge(path: string, largest: number): DurableWriteError {
  return unfit(`${path} is larger than what may be kept of it, ${largest} bytes`, {
    code: 'EFBIG',
    syscall: 'read',
    path,
    advice: 'another program has written there: remove the file, or raise limits.bytes of the directory',
  })
}

/** `admit`: refuses a file of this size by throwing. */
async function readInside(
  directories: OpenDirectories,
  path: string,
  admit: (size: number) => void,
): Promise<{ content: Uint8Array; mode: number } | undefined> {
  const { fs } = directories
  const opening = directories.use(parentOf(path), (parent) => fs.openFile(parent, nameOf(path)))
  return ifThere(fs, opening, async (file) => {
    const { size, mode } = await metadataOf(fs, file)
    admit(size)
    return { content: await readWhole(fs, file, size), mode }
  })
}

/*
 * Whether published content has disappeared: the cheapest check that finds a target removed or emptied, its parent replaced, or a mount
 * over it. Names alone count: a change of one among several files is up to the comparison.
 */

/** Whether a published directory has lost all its entries, or its record. Reads no content and takes no lock. */
export async function isGone(fs: FileSystem, target: string): Promise<boolean> {
  return (await withSnapshot(fs, target, holdsAny)) !== true
}

async function holdsAny({ fs, target, parent, name, records: [record] }: TargetSnapshot): Promise<boolean> {
  if (record === undefined || (await fs.look(parent, name))?.type !== 'directory') return false
  try {
    return await withOpen(fs, openOffMounts(fs, target, parent, name), async (opened) => {
      const names = topNames(record.entries.map(({ path }) => path))
      if (names.size === 0) return true
      // By name: others can have put any number of files there.
      if (record.kind === 'symlink') return showsAny(fs, opened, names)
      for (const one of names) if ((await fs.look(opened, one)) !== undefined) return true
      return false
    })
  } catch (error) {
    if (error instanceof DurableWriteError) return false
    throw error
  }
}

/** Whether consumers find anything in the form `symlink`: a link, while it leads anywhere. */
async function showsAny(fs: FileSystem, target: Descriptor, names: ReadonlySet<string>): Promise<boolean> {
  const dataDirectory = await currentDataDirectory(fs, target)
  if (dataDirectory === undefined || (await fs.look(target, dataDirectory)) === undefined) return false
  const links = await keyLinks(fs, target, names)
  return [...names].some((name) => links.has(name))
}
