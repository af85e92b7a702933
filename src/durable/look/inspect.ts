import { join } from 'node:path'
import { nameOf, parentOf } from '../../relative-path.js'
import { codeOf } from '../../errors.js'
import { DurableWriteError, unfit } from '../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import {
  Bound,
  currentDataDirectory,
  dataLink,
  keyLinks,
  mostOthers,
  readDataDirectory,
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
  readFileTree,
  readTree,
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
  recordFor,
  withRecord,
} from '../record/index.js'
import { openOffMounts } from '../target/index.js'
import { findRetired } from '../keep/index.js'
import type { Hold, Pin, Publication } from '../types.js'

/*
 * Reads a target without a lock, and writes nothing. A publication in the same instant may change the target between two reads; a reader
 * that finds another record than before starts again.
 */

const looks = 8

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
  return lookUntilQuiet(fs, target, async (parent, name, records) => {
    const seen = await publicationIn(fs, target, parent, name, records)
    return seen && { state: seen.state, sequence: seen.record.sequence, quiet: seen.state.differences.length === 0 }
  })
}

interface Look<State> {
  readonly state: State
  readonly sequence: number
  /** No other program has changed the target during the reads. */
  readonly quiet: boolean
}

/**
 * Looks at a target and its records, newest first, and again while a publication may be under way. undefined where its directory is
 * missing, or `once` finds nothing.
 */
export async function lookUntilQuiet<State>(
  fs: FileSystem,
  target: string,
  once: (parent: Descriptor, name: string, records: readonly StoredRecord[]) => Promise<Look<State> | undefined>,
): Promise<State | undefined> {
  let before: Look<State> | undefined
  for (let look = 1; ; look++) {
    const now = await withRecord(fs, target, async (parent, name, records, missed) => {
      refuseMissed(target, records, missed)
      return once(parent, name, records)
    }).catch((error: unknown) => {
      // A listed name had gone at its opening, as beside a publication in the same instant.
      if (look < looks && (error instanceof RecordMoving || movingCodes.has(codeOf(error) ?? '')))
        return 'moving' as const
      throw error
    })
    const quiet = now !== 'moving' && (now === undefined || now.quiet)
    if (now !== 'moving' && (quiet || look === looks || now.sequence === before?.sequence)) return now?.state
    before = now === 'moving' ? undefined : now
  }
}

/** The record went while it was read, and its successor had not come when the names were listed. @internal */
export function refuseMissed(target: string, records: readonly StoredRecord[], missed: boolean): void {
  if (!missed || records.length > 0) return
  throw new RecordMoving(`the record beside ${target} was replaced at each of ${looks} looks: try again`)
}

class RecordMoving extends Error {}
const movingCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE'])

/**
 * The state of a target in this directory: these records, newest first, compared with the disk, and the record that fits it; undefined
 * without any.
 */
export async function publicationIn(
  fs: FileSystem,
  target: string,
  parent: Descriptor,
  name: string,
  records: readonly StoredRecord[],
): Promise<{ state: Publication; record: StoredRecord; tree: Tree | undefined; here: FoundPlace } | undefined> {
  // An aborted publication leaves its record until the next run: the one that fits the disk speaks.
  const [newest] = records
  if (newest === undefined) return undefined
  const tree = await readTarget(fs, target, parent, name, newest.kind, records)
  const record = recordFor(newest, records, tree)
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
    ...((await hasOldContent(fs, parent, records)) && { retired: true as const }),
    ...(await oldestKept(fs, parent, record)),
    ...(record.removing && { removing: true as const }),
    ...(letGo !== undefined && { letGo: new Date(letGo) }),
    ...(record.relocation && { relocation: record.relocation }),
    ...(record.movedTo !== undefined && { movedTo: record.movedTo }),
    differences: await differencesIn(fs, parent, name, record, tree),
  }
  return { state, record, tree, here }
}

/** It stays for those who use it, or was too much to be removed at once. */
async function hasOldContent(fs: FileSystem, parent: Descriptor, records: readonly StoredRecord[]): Promise<boolean> {
  if ((await findRetired({ fs, parent }, records)).length > 0) return true
  const name = records[0]?.staging?.name
  return name !== undefined && (await fs.look(parent, name)) !== undefined
}

/** Where something of another kind stands at the target, that alone. */
async function differencesIn(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  record: StoredRecord,
  tree: Tree | undefined,
): Promise<Publication['differences']> {
  const found = tree === undefined ? await fs.look(parent, name) : undefined
  if (found !== undefined && found.type !== typeOf(record.kind)) return [{ path: '.', problem: 'type' }]
  return [...compare(record, tree), ...(await formDifferences(fs, parent, name, record))]
}

/** They go in the order in which they came. */
async function oldestKept(
  fs: FileSystem,
  parent: Descriptor,
  { history }: StoredRecord,
): Promise<Pick<Publication, 'pastSince'>> {
  for (const { name, replacedAt } of history?.generations.toReversed() ?? []) {
    if ((await fs.look(parent, name)) !== undefined) return { pastSince: new Date(replacedAt) }
  }
  return {}
}

function typeOf(kind: StoredRecord['kind']): 'file' | 'directory' {
  return kind === 'file' ? 'file' : 'directory'
}

/**
 * The content of a target in the form of its publication, as far as these records and the bound go; without a record, all of it. undefined
 * where there is none.
 */
export async function readTarget(
  fs: FileSystem,
  target: string,
  parent: Descriptor,
  name: string,
  kind: StoredRecord['kind'],
  records: readonly Pick<StoredRecord, 'entries'>[],
): Promise<Tree | undefined> {
  const bound = records.length === 0 ? undefined : new Bound(records.flatMap(({ entries }) => entries))
  const entry = await fs.look(parent, name)
  if (entry === undefined) return undefined
  if (entry.type !== typeOf(kind)) return undefined
  if (kind === 'file') return readFileTree(fs, parent, name, bound)
  const read = kind === 'symlink' ? readDataDirectory : readTree
  return ifThere(fs, openOffMounts(fs, target, parent, name), (opened) => read(fs, opened, false, bound))
}

/** The parts of a symlink directory, on the way of its consumers, that differ from its form. */
export async function formDifferences(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
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

/**
 * Of these records, newest first, the one that speaks of a target. Reads the target only where its inode and content decide: a publication
 * killed before its exchange leaves a record that does not count.
 */
export async function speakingRecord(
  fs: FileSystem,
  target: string,
  parent: Descriptor,
  name: string,
  records: readonly StoredRecord[],
): Promise<StoredRecord | undefined> {
  const [newest] = records
  if (newest === undefined || newest.committed || records.length === 1) return newest
  return recordFor(newest, records, await readTarget(fs, target, parent, name, newest.kind, records))
}

/** What the record that speaks for a target says of it: see RecordSaid. */
export async function readRecord(fs: FileSystem, target: string): Promise<RecordSaid | undefined> {
  const found = await lookUntilQuiet(fs, target, async (parent, name, records) => {
    const state = await speakingRecord(fs, target, parent, name, records)
    return state && { state, sequence: state.sequence, quiet: true }
  })
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
  await withRecord(fs, target, async (parent, name, [newest]) => {
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
  const isThere = await withRecord(fs, target, async (parent, name, [newest]) =>
    newest === undefined ? false : holdsAny(fs, target, parent, name, newest),
  )
  return isThere !== true
}

async function holdsAny(
  fs: FileSystem,
  target: string,
  parent: Descriptor,
  name: string,
  record: StoredRecord,
): Promise<boolean> {
  if ((await fs.look(parent, name))?.type !== 'directory') return false
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
