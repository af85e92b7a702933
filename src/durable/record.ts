import { hash } from 'node:crypto'
import { codeOf } from '../errors.js'
import type { Descriptor, FileSystem } from './file-system.js'
import { recordPattern, type TargetNames } from './names.js'
import { readWhole } from './read-whole.js'
import type { TreeEntry } from './tree.js'
import type { RecordedObject } from './types.js'

/*
 * The publication record, `.holdfast-ID.SEQUENCE` beside the target, 0600: what was published, from what, and what is
 * still to be done for it. A file of lines, each `SHA-256 of the JSON, a space, JSON`. The first line is the record and
 * becomes durable in the publication's first barrier, before the exchange; later lines are appended without fsync:
 *
 *   {"settled":true}     the exchange is durable, too
 *   {"hook":"NAME"}      this hook has run
 *   {"objects":[…]}      newer versions of some objects, which gave the same content
 *
 * An appended line that a power cut takes away costs nothing: under another boot, what is read came from the disk, and a
 * hook runs at least once. A line that does not match its checksum, and all after it, count as absent.
 */

export type RecordKind = 'exchange' | 'symlink' | 'file'

/** What an exchange can leave under a staging name by this program's own doing: see set-aside.ts. Numbers of inodes, in decimal. */
export interface StagedInodes {
  readonly name: string
  readonly staged: string
  readonly old: string
}

export interface RecordBody {
  readonly version: 1
  /** The target's basename. */
  readonly name: string
  readonly kind: RecordKind
  readonly boot: string
  /** Digest of the target before; null where there was none. */
  readonly before: string | null
  readonly after: string
  /** What was there before was this program's, too, drifted or not: not somebody else's directory, nor nothing. */
  readonly owned: boolean
  /** Milliseconds since the epoch. */
  readonly publishedAt: number
  readonly objects: readonly RecordedObject[]
  readonly hooks: readonly string[]
  readonly entries: readonly Omit<TreeEntry, 'label'>[]
  /** Only where something is exchanged. */
  readonly staging?: StagedInodes
}

export interface StoredRecord extends RecordBody {
  readonly sequence: number
  /** Marked so: it was published for certain. */
  readonly settled: boolean
  /** Known to be durable: marked settled, or written under another boot. */
  readonly trusted: boolean
  readonly pendingHooks: readonly string[]
}

type Appendix = { settled: true } | { hook: string } | { objects: readonly RecordedObject[] }

export function encodeRecord(body: RecordBody): Uint8Array {
  return encodeLine(body)
}

export function encodeAppendix(appendix: Appendix): Uint8Array {
  return encodeLine(appendix)
}

function encodeLine(value: object): Uint8Array {
  const json = JSON.stringify(value)
  return Buffer.from(`${checksum(json)} ${json}\n`)
}

function checksum(text: string): string {
  return hash('sha256', text)
}

/** undefined for a record that is torn, or not of this target. */
export function parseRecord(text: string, name: string, sequence: number, boot: string): StoredRecord | undefined {
  const [body, ...rest] = wholeLines(text)
  if (!isBody(body) || body.name !== name) return undefined
  let settled = false
  let { objects } = body
  const done = new Set<string>()
  for (const line of rest as Partial<{ settled: true; hook: string; objects: RecordedObject[] }>[]) {
    // A record again, by whatever mishap: its objects are older than what has been appended to it.
    if (isBody(line)) continue
    if (line.settled) settled = true
    if (line.hook !== undefined) done.add(line.hook)
    if (line.objects !== undefined) objects = newer(objects, line.objects)
  }
  return {
    ...body,
    objects,
    sequence,
    settled,
    trusted: settled || body.boot !== boot,
    pendingHooks: body.hooks.filter((hook) => !done.has(hook)),
  }
}

/** What stands behind a checksum of ours is as this program has written it. */
function isBody(line: unknown): line is RecordBody {
  return (line as RecordBody | undefined)?.version === 1
}

/** The recorded objects, those named again in their newer version. */
function newer(objects: readonly RecordedObject[], updates: readonly RecordedObject[]): RecordedObject[] {
  const key = ({ kind, namespace, name }: RecordedObject): string => `${kind} ${namespace}/${name}`
  const merged = new Map([...objects, ...updates].map((object) => [key(object), object]))
  return [...merged.values()]
}

function wholeLines(text: string): object[] {
  const values: object[] = []
  for (const line of text.split('\n').slice(0, -1)) {
    const json = line.slice(65)
    if (line[64] !== ' ' || line.slice(0, 64) !== checksum(json)) break
    const value = parseLine(json)
    if (value === undefined) break
    values.push(value)
  }
  return values
}

/** undefined for what is no JSON object: no line of ours, whatever its checksum. */
function parseLine(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** What is kept beside a target. */
export interface Records {
  /** Whole ones, newest first. */
  readonly valid: readonly StoredRecord[]
  /** Sequences of the torn ones. */
  readonly torn: readonly number[]
  /** Sequences whose names somebody else has taken: they are left alone, and no record of ours can have them. */
  readonly taken: ReadonlySet<number>
  /** Random parts of the names of staging directories or files. */
  readonly staging: readonly string[]
  /** Random parts of the names of what was there and is somebody else's. */
  readonly aside: readonly string[]
  /** A record went between the listing and its reading: its successor may have come after the listing. */
  readonly missed: boolean
}

/** The sequence of the next record: above every record's, and free. Nobody else's file can raise it beyond all bounds. */
export function nextSequence({ valid, torn, taken }: Pick<Records, 'valid' | 'torn' | 'taken'>): number {
  let sequence = Math.max(0, ...torn, ...valid.map((record) => record.sequence)) + 1
  while (taken.has(sequence)) sequence++
  return sequence
}

/** Reads everything of this target's own form in its parent; `listing`: the names there, where they are known. */
export async function readRecords(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  names: TargetNames,
  listing?: readonly string[],
): Promise<Records> {
  const boot = await fs.bootId()
  const valid: StoredRecord[] = []
  const torn: number[] = []
  const taken = new Set<number>()
  const staging: string[] = []
  const aside: string[] = []
  let missed = false
  for (const entry of listing ?? (await fs.list(parent))) {
    const random = names.stagingOf(entry)
    if (random !== undefined) staging.push(random)
    const strange = names.asideOf(entry)
    if (strange !== undefined) aside.push(strange)
    const sequence = names.sequenceOf(entry)
    if (sequence === undefined) continue
    const text = await readRecordFile(fs, parent, entry)
    if (text === undefined) missed = true
    if (text === null) taken.add(sequence)
    if (typeof text !== 'string') continue
    const record = parseRecord(text, name, sequence, boot)
    if (record) valid.push(record)
    else torn.push(sequence)
  }
  valid.sort((a, b) => b.sequence - a.sequence)
  return { valid, torn, taken, staging, aside, missed }
}

/** The records of all targets in a directory: staging names of a family are named by any of them. */
export async function readAllRecords(fs: FileSystem, parent: Descriptor): Promise<RecordBody[]> {
  const bodies: RecordBody[] = []
  for (const entry of await fs.list(parent)) {
    if (!recordPattern.test(entry)) continue
    const text = await readRecordFile(fs, parent, entry)
    const [body] = typeof text === 'string' ? wholeLines(text) : []
    if (isBody(body)) bodies.push(body)
  }
  return bodies
}

/**
 * undefined where the record has gone meanwhile: its publication was superseded; null where it is not to be believed: in a
 * sticky directory, such as /tmp, anybody can make a file of this name.
 */
async function readRecordFile(fs: FileSystem, parent: Descriptor, entry: string): Promise<string | null | undefined> {
  let file: Descriptor
  try {
    file = await fs.openFile(parent, entry)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    if (codeOf(error) === 'ELOOP' || codeOf(error) === 'EACCES') return null
    throw error
  }
  try {
    const { type, uid, mode, size } = await fs.attributes(file)
    const own = uid === 0 || uid === fs.user.uid
    if (type !== 'file' || !own || (mode & 0o022) !== 0) return null
    return (await readWhole(fs, file, size)).toString('utf8')
  } finally {
    await fs.close(file)
  }
}
