import { hash } from 'node:crypto'
import { damaged, generationsOf, noneEarlier, readEarlier } from './earlier-content.js'
import { unfit } from '../errors.js'
import type { Attributes, FileSystem } from '../file-system.js'
import { formDifferences, readPublishedFiles, publicationIn } from './inspect.js'
import { lookUntilQuiet, type TargetSnapshot, withSnapshot } from './snapshot.js'
import { describes, isInForce, isPinned, type StoredRecord } from '../record/index.js'
import type { Tree, TreeEntry } from '../path/index.js'
import type { Generation, Hold, Pin, Publication, RecordedObject } from '../types.js'

/* The content of a target, now or before, with the bytes of its files, to compare contents. Takes no lock, writes nothing. */

export interface ContentEntry {
  /** Relative to the target; empty for the target itself. */
  readonly path: string
  readonly type: 'file' | 'directory' | 'symlink' | 'other'
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Tells equal contents; of a secret that can be guessed it tells the secret, too. */
  readonly sha256: string
  /** Bytes of a file. */
  readonly size?: number
  /** Of a file that is not too large. */
  readonly content?: Uint8Array
  /** It has the very bytes that the recorded objects gave it. */
  readonly asRecorded: boolean
}

export interface TargetContent {
  /** In byte order of their paths; none where there is no target. */
  readonly entries: readonly ContentEntry[]
  /** The objects of its publication. */
  readonly objects: readonly RecordedObject[]
  /** Of its record; absent where holdfast has published nothing there. */
  readonly sequence?: number
  readonly publishedAt?: Date
  /** In force now. */
  readonly hold?: Hold
  readonly pin?: Pin
  /** The links of a symlink directory, and the directory behind them, that differ from its form; and that there is more than was read. */
  readonly brokenForm?: Publication['differences']
}

/** Bytes. A larger file stays out of memory: any program can have put it there. */
const largest = 4 * 1024 * 1024

/**
 * The content of a target now, or with `sequence` the one that `holdfast history` lists so, unchanged since its publication.
 * @throws DurableWriteError where there is no such content, or it is damaged
 */
export async function readContent(fs: FileSystem, target: string, sequence?: number): Promise<TargetContent> {
  const present = await readPresent(fs, target)
  if (sequence === undefined) return present?.content ?? { entries: [], objects: [] }
  if (present?.content.sequence === undefined) throw noneEarlier(target, `holdfast has published nothing at ${target}`)
  const { content, record } = present
  if (content.sequence !== sequence) return earlierContent(fs, target, record, sequence)
  if (present.intact) return content
  throw unfit(`what ${target} holds is not what was published as ${sequence}: somebody has changed it since`, {
    code: 'EBADMSG',
    syscall: 'read',
    path: target,
    advice: 'to compare what it holds now, leave the number out',
  })
}

interface PresentContent {
  readonly content: TargetContent
  readonly record: StoredRecord | undefined
  /** The content equals its record. */
  readonly intact: boolean
}

async function readPresent(fs: FileSystem, target: string): Promise<PresentContent | undefined> {
  return lookUntilQuiet(fs, target, async (seen) => {
    const there = await fs.look(seen.parent, seen.name)
    const tree = await seen.tree()
    const record = await seen.record()
    const intact = record !== undefined && describes(record, tree)
    const brokenForm = record ? await formDifferences(seen, record) : []
    if (tree?.isCut) brokenForm.push({ path: '.', problem: 'more' })
    const content = {
      entries: tree ? await entriesOf(fs, target, tree, record) : there ? [ofOtherKind(there)] : [],
      ...saidOf(fs, record),
      ...(brokenForm.length > 0 && { brokenForm }),
    }
    return { state: { content, record, intact }, quiet: record === undefined || intact }
  })
}

function saidOf(fs: FileSystem, record: StoredRecord | undefined): Omit<TargetContent, 'entries'> {
  if (record === undefined) return { objects: [] }
  const { sequence, publishedAt, objects, hold, pin } = record
  return {
    sequence,
    publishedAt: new Date(publishedAt),
    objects: [...objects],
    ...(isInForce(hold, fs.now()) && { hold }),
    ...(isPinned(pin, fs.now()) && { pin }),
  }
}

/** Something else stands in its place: what that holds is not looked at. */
function ofOtherKind({ type, mode, uid, gid }: Attributes): ContentEntry {
  return { path: '', type, mode, uid, gid, sha256: '', asRecorded: false }
}

async function entriesOf(
  fs: FileSystem,
  target: string,
  { entries }: Tree,
  record: StoredRecord | undefined,
): Promise<ContentEntry[]> {
  const recorded = new Map(record?.entries.map((entry) => [entry.path, entry]))
  const read = entries.filter(
    ({ type, path, size = 0, sha256 }) => type === 'file' && sha256 !== '' && path !== '' && size <= largest,
  )
  const found = await readPublishedFiles(
    fs,
    target,
    read.map(({ path }) => path),
  )
  const files = new Map(Object.entries(found).map(([path, { content }]) => [path, content]))
  return entries.map((entry) => {
    const { type, sha256 } = recorded.get(entry.path) ?? {}
    return contentEntry(entry, files.get(entry.path), type === entry.type && sha256 === entry.sha256)
  })
}

/** Leaves out bytes that were read at another time than the rest and differ. */
function contentEntry(entry: TreeEntry, bytes: Uint8Array | undefined, asRecorded: boolean): ContentEntry {
  const { path, type, mode, uid, gid, sha256, size } = entry
  const content = bytes !== undefined && hash('sha256', bytes) === sha256 ? bytes : undefined
  return {
    path,
    type,
    mode,
    uid,
    gid,
    sha256,
    asRecorded,
    ...(size !== undefined && { size }),
    ...(content && { content }),
  }
}

async function earlierContent(
  fs: FileSystem,
  target: string,
  record: StoredRecord | undefined,
  sequence: number,
): Promise<TargetContent> {
  const content = await withSnapshot(fs, target, async (seen) => {
    const generations = record ? await generationsOf(seen, record) : []
    const generation = generations.find((one) => one.sequence === sequence)
    if (generation) return earlierOnce(seen, generation)
    const shown = [record?.sequence, ...generations.map((one) => one.sequence)].join(', ')
    throw noneEarlier(target, `${target} has no content ${sequence}; there are ${shown}`)
  })
  return content ?? Promise.reject(noneEarlier(target, `${target} has no content ${sequence}: its directory is gone`))
}

async function earlierOnce(seen: TargetSnapshot, generation: Generation): Promise<TargetContent> {
  const found = await readEarlier(seen, generation)
  if (found === undefined || found instanceof Error) throw damaged(seen.target, generation, found)
  const entries = found.entries.map((entry) => contentEntry(entry, found.files.get(entry.path), true))
  const { sequence, publishedAt, objects } = generation
  return { entries, sequence, publishedAt: new Date(publishedAt), objects }
}

/* The published content of a target, with its bytes, for a publisher of another path, too. */

export interface PublishedContent {
  readonly record: StoredRecord
  /** By their relative paths: just what the record says. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/**
 * undefined where holdfast has published nothing, where the target differs from its record or may not be durable, and while another call
 * publishes it. Takes no lock.
 */
export async function readPublishedContent(fs: FileSystem, target: string): Promise<PublishedContent | undefined> {
  const record = await lookUntilQuiet(fs, target, async (seen) => {
    const found = await publicationIn(seen)
    // A record in a copy of the directory vouches for files that no fsync has reached.
    const isWhole = found?.state.durable === true && describes(found.record, found.tree)
    return { state: isWhole ? found.record : undefined, quiet: true }
  })
  if (record === undefined) return undefined
  const expected = record.entries.filter(({ type }) => type === 'file')
  const paths = expected.map(({ path }) => path)
  const found = await readPublishedFiles(fs, target, paths)
  const files = new Map<string, Uint8Array>()
  for (const { path, sha256 } of expected) {
    const content = found[path]?.content
    if (content === undefined || hash('sha256', content) !== sha256) return undefined
    files.set(path, content)
  }
  return { record, files }
}
