import { codeOf } from '../../errors.js'
import {
  type StagedEntries,
  lock,
  recordPattern,
  type TargetNames,
  namesFor,
  remove,
  checkTarget,
  atPlace,
  Scope,
  setMetadata,
  readWhole,
} from '../path/index.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import {
  type Appendix,
  encodeAppendix,
  encodeRecord,
  isBody,
  isOfNewerVersion,
  parseRecord,
  type RecordBody,
  type StoredRecord,
} from './record.js'
import { addLine, append, appendPatience, type RecordArea, tryAppend } from './record-appends.js'
import { wholeLines } from './record-lines.js'
import type { RecordedObject } from '../types.js'

/*
 * The files that hold publication records: staged with the content, marked and appended to once it is durable, and read back.
 */

/** What is kept beside a target. */
export interface Records {
  /** Whole ones, newest first. */
  readonly valid: readonly StoredRecord[]
  /** Sequences of the torn ones. */
  readonly torn: readonly number[]
  /** Sequences whose names somebody else has taken: they are left alone, and no record of ours can have them. */
  readonly taken: ReadonlySet<number>
  /** Sequences of records of a newer version of this program: they stay, and nothing is published over them. */
  readonly newer: readonly number[]
  /** Random parts of the names of staging directories or files. */
  readonly staging: readonly string[]
  /** Random parts of the names of what was there and is somebody else's. */
  readonly quarantined: readonly string[]
  /** Names of earlier contents, in a record or left over. */
  readonly generations: readonly string[]
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
  const newer: number[] = []
  const staging: string[] = []
  const quarantined: string[] = []
  const generations: string[] = []
  let missed = false
  for (const entry of listing ?? (await fs.list(parent))) {
    const random = names.stagingOf(entry)
    if (random !== undefined) staging.push(random)
    const strange = names.quarantineOf(entry)
    if (strange !== undefined) quarantined.push(strange)
    if (names.isGeneration(entry)) generations.push(entry)
    const sequence = names.sequenceOf(entry)
    if (sequence === undefined) continue
    const text = await readRecordFile(fs, parent, entry)
    if (text === undefined) missed = true
    if (text === null) taken.add(sequence)
    if (typeof text !== 'string') continue
    const record = parseRecord(text, name, sequence, boot)
    if (record) valid.push(record)
    else if (isOfNewerVersion(text)) newer.push(sequence)
    else torn.push(sequence)
  }
  valid.sort((a, b) => b.sequence - a.sequence)
  return { valid, torn, taken, newer, staging, quarantined, generations, missed }
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

/** The record of a publication that is under way: staged with the content, marked once that is known to be durable. */
export class RecordFile<Owner> {
  #file: Descriptor | undefined
  #size = 0
  #staged = false

  constructor(
    readonly scope: Scope,
    readonly parent: Descriptor,
    readonly names: TargetNames,
    readonly sequence: number,
  ) {}

  get name(): string {
    return this.names.record(this.sequence)
  }

  async stage(body: RecordBody, staged: StagedEntries<Owner>, owner: Owner): Promise<void> {
    const { scope, parent, name } = this
    // A barrier at the bound of staged files may close it: then it is opened again to be marked.
    const file = await staged.create(scope, parent, name)
    this.#staged = true
    this.#file = file
    const line = encodeRecord(body)
    this.#size = line.length
    await scope.fs.write(file, line)
    await setMetadata(scope.fs, file, { target: name, mode: 0o600 })
    staged.add(scope, file, owner, true)
  }

  /** What it says of is durable from here on. The mark itself is not synced: under another boot nobody needs it. */
  async markCommitted(): Promise<void> {
    const { scope, parent, names, name } = this
    const { fs } = scope
    const file = this.#file
    if (file !== undefined && scope.holds(file) && (await fs.attributes(file)).size === this.#size) {
      return addLine(fs, file, encodeAppendix({ settled: true }), this.#size)
    }
    return append({ fs, parent, names }, name, { settled: true })
  }

  /** Removes it, if it was made. */
  async discard(): Promise<void> {
    if (this.#staged) await remove(this.scope.fs, this.parent, this.name)
  }
}

/** Hands over a target's parent and records, without a lock; undefined where the parent does not exist. */
export async function withRecord<T>(
  fs: FileSystem,
  target: string,
  use: (parent: Descriptor, name: string, records: readonly StoredRecord[], missed: boolean) => Promise<T | undefined>,
): Promise<T | undefined> {
  return atPlace(fs, checkTarget(target), async ({ anchor, name, missing }) => {
    if (missing.length > 0) return undefined
    const records = await readRecords(fs, anchor, name, namesFor(name))
    return use(anchor, name, records.valid, records.missed)
  })
}

/*
 * Lines that are added to the record of what is published, without the target's lock: a publication in the same instant has a record of
 * its own. Only a record that must be written anew is locked for it.
 */

/** Appends to the record of this digest, if it is still the newest one; answers whether it was, and a reader sees the line. */
async function appendTo(fs: FileSystem, target: string, digest: string, appendix: Appendix): Promise<boolean> {
  const added = await appendBy(fs, target, digest, (area, name) => tryAppend(area, name, appendix))
  if (added !== false) return added ?? false
  const locked = await withRecord(fs, target, (parent, name) =>
    underLock(fs, target, parent, namesFor(name), async () =>
      appendBy(fs, target, digest, async (area, name) => {
        await append(area, name, appendix)
        return true
      }),
    ),
  )
  return locked ?? false
}

/** Has a line added to the record of this digest; undefined where there is none, or a newer publication has just removed it. */
async function appendBy(
  fs: FileSystem,
  target: string,
  digest: string,
  add: (area: RecordArea, name: string) => Promise<boolean>,
): Promise<boolean | undefined> {
  return withRecord(fs, target, async (parent, name, records) => {
    const record = records.find(({ after }) => after === digest)
    if (record === undefined) return undefined
    const names = namesFor(name)
    try {
      return await add({ fs, parent, names }, names.record(record.sequence))
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    }
  })
}

async function underLock<T>(
  fs: FileSystem,
  target: string,
  parent: Descriptor,
  { lock: name }: TargetNames,
  work: () => Promise<T>,
): Promise<T> {
  const scope = new Scope(fs)
  const { device, inode } = await fs.attributes(parent)
  const identity = `${device}:${inode}:${name}`
  let leave: (() => void) | undefined
  try {
    leave = await lock(scope, { parent, name, identity, target, timeout: appendPatience, signal: undefined })
    return await work()
  } finally {
    await scope.closeAll()
    leave?.()
  }
}

/** Records that a hook has run for the publication with this digest. False where a newer one has taken its place. */
export async function completeHook(fs: FileSystem, target: string, digest: string, hook: string): Promise<boolean> {
  return appendTo(fs, target, digest, { hook })
}

/** Records newer versions of some of the objects, which gave the same content: no older ones are taken after a restart. */
export async function recordObjects(
  fs: FileSystem,
  target: string,
  digest: string,
  objects: readonly RecordedObject[],
): Promise<boolean> {
  return appendTo(fs, target, digest, { objects })
}
