import { join } from 'node:path'
import { DurableWriteError, unfit } from '../errors.js'
import { sleep } from '../../deadline.js'
import { clock } from '../../clock.js'
import { adviceFor, codeOf, isSystemError, type SystemError } from '../../errors.js'
import {
  accessAttribute,
  type StagedEntries,
  lock,
  recordPattern,
  type TargetNames,
  namesFor,
  remove,
  replaceEntry,
  checkTarget,
  atPlace,
  openOwn,
  inScope,
  type Scope,
  setMetadata,
  readWhole,
  fsyncAll,
} from '../path/index.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import {
  type Appendix,
  encodeAppendix,
  encodeRecord,
  isOfOtherVersion,
  parseRecord,
  recordBody,
  type StoredRecord,
  encoded,
} from './record.js'
import { othersWrite, sticky, writableByAll, writableByGroup } from '../../writers.js'
import { readLines, wholeLines } from '../../checked-lines.js'
import { isBody, knownFields, type RecordBody } from './record-fields.js'
import type { RecordedObject } from '../types.js'

/*
 * The files that hold publication records: staged with the content, marked and appended to once it is durable, and read back.
 */

/** Where a record is. */
export interface RecordArea {
  readonly fs: FileSystem
  readonly parent: Descriptor
  readonly names: TargetNames
}

/** The records and other files that holdfast keeps beside a target. */
export interface Records {
  /** Whole ones, newest first. */
  readonly valid: readonly StoredRecord[]
  /** Sequences of the torn ones. */
  readonly torn: readonly number[]
  /** Sequences of names that another program's files have: they stay, and no record of ours can have them. */
  readonly taken: ReadonlySet<number>
  /** Names of records, among the others, that root's group may write as well: a careless `chmod -R g+w` stops no renewal. */
  readonly loose: readonly string[]
  /** Sequences of records of a newer version of this program: they stay, and holdfast publishes nothing over them. */
  readonly newer: readonly number[]
  /** Random parts of the names of staging directories or files. */
  readonly staging: readonly string[]
  /** Random parts of the names of another program's quarantined files. */
  readonly quarantined: readonly string[]
  /** Names of earlier contents, in a record or left over. */
  readonly generations: readonly string[]
  /** A record went between the listing and its reading: its successor may have come after the listing. */
  readonly missed: boolean
}

/** The names of records have 15 digits: a foreign file takes away a tenth of them at most. */
const mostTaken = 9e14

/**
 * The sequence of the next record: above every name that is taken, since a record that its owner gives back must not outrank those that
 * came after it. A foreign file cannot raise it beyond all bounds.
 */
export function nextSequence({ valid, torn, taken }: Pick<Records, 'valid' | 'torn' | 'taken'>): number {
  const bounded = [...taken].filter((sequence) => sequence < mostTaken)
  let sequence = Math.max(0, ...torn, ...bounded, ...valid.map((record) => record.sequence)) + 1
  while (taken.has(sequence)) sequence++
  return sequence
}

/** Reads each file of this target's form in its parent; `listing`: the names there, where the caller knows them. */
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
  const loose: string[] = []
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
    const file = await readRecordFile(fs, parent, entry)
    if (file === undefined) missed = true
    if (file === null) taken.add(sequence)
    if (!file) continue
    const { text, isLoose } = file
    if (isLoose) loose.push(entry)
    const record = parseRecord(text, name, sequence, boot)
    if (record) valid.push(withTimePassed(record, { now: fs.now(), boot, uptime: fs.uptime() }))
    else if (isOfOtherVersion(text)) newer.push(sequence)
    else torn.push(sequence)
  }
  valid.sort((a, b) => b.sequence - a.sequence)
  return { valid, torn, taken, loose, newer, staging, quarantined, generations, missed }
}

/** Milliseconds by which two clocks may differ although neither is set. */
const slew = 1_000

/**
 * The record with the times of its earlier contents as the clock on the wall has them now: it may have been set since. The kernel's own
 * clock tells how long ago a content was replaced in this start of the kernel.
 */
function withTimePassed(
  record: StoredRecord,
  { now, boot, uptime }: { now: number; boot: string; uptime: number },
): StoredRecord {
  const { history } = record
  if (history === undefined) return record
  const generations = history.generations.map((generation) => {
    const { replacedAt, replacedIn } = generation
    // A container whose uptime begins anew has the kernel's boot.
    if (replacedIn?.boot !== boot || replacedIn.uptime > uptime) return generation
    const exact = now - (uptime - replacedIn.uptime)
    // Never earlier: the next record keeps this time, and after another start of the kernel it alone tells the age.
    return exact - replacedAt <= slew ? generation : { ...generation, replacedAt: exact }
  })
  return { ...record, history: { ...history, generations } }
}

/** The records of all targets in a directory: staging names of a family are named by any of them. */
export async function readAllRecords(
  fs: FileSystem,
  parent: Descriptor,
  takesStrangers?: TakesStrangers,
): Promise<RecordBody[]> {
  return (await firstLines(fs, parent, takesStrangers)).flatMap(({ line }) => (isBody(line) ? [line] : []))
}

/** The names of all records in a directory, each with the target that it names; undefined where it is torn. */
export async function namedRecords(
  fs: FileSystem,
  parent: Descriptor,
): Promise<{ entry: string; name: string | undefined }[]> {
  return (await firstLines(fs, parent)).map(({ entry, line }) => ({
    entry,
    name: line && 'name' in line && knownFields.name.is(line.name) ? line.name : undefined,
  }))
}

async function firstLines(
  fs: FileSystem,
  parent: Descriptor,
  takesStrangers?: TakesStrangers,
): Promise<{ entry: string; line: object | undefined }[]> {
  const lines: { entry: string; line: object | undefined }[] = []
  for (const entry of await fs.list(parent)) {
    if (!recordPattern.test(entry)) continue
    const file = await readRecordFile(fs, parent, entry, takesStrangers)
    if (file) lines.push({ entry, line: wholeLines(file.text)[0] })
  }
  return lines
}

interface RecordText {
  readonly text: string
  /** Root's group may write to it as well. */
  readonly isLoose: boolean
}

/** Whether a directory lets its own users make names that only they, root and its owner can take away, as /tmp does. */
export type TakesStrangers = (parent: Attributes, fs: FileSystem) => boolean

const isShared: TakesStrangers = ({ mode }) => (mode & sticky) !== 0 && (mode & (writableByAll | writableByGroup)) !== 0

/** undefined where the record has gone meanwhile: a newer publication superseded it; null where the name is another program's, or user's. */
async function readRecordFile(
  fs: FileSystem,
  parent: Descriptor,
  entry: string,
  takesStrangers = isShared,
): Promise<RecordText | null | undefined> {
  try {
    return await inScope(fs, async (scope) => {
      const { file, attributes } = await openOwn(scope, 'openFile', parent, entry)
      const isLoose = file !== undefined && (await isRootsAlone(fs, file, attributes))
      const isOthers = !isLoose && (await isTaken(fs, parent, entry, attributes, takesStrangers))
      if (file === undefined || isOthers) return null
      return { text: (await readWhole(fs, file, attributes.size)).toString('utf8'), isLoose }
    })
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Whether beside its owner root's group alone may write to it. With an ACL, the group's bits of a mode are those of all that it names. */
async function isRootsAlone(fs: FileSystem, file: Descriptor, { mode, gid }: Attributes): Promise<boolean> {
  if (gid !== 0 || (mode & (writableByAll | writableByGroup)) !== writableByGroup) return false
  return (await fs.extendedAttributes(file))?.has(accessAttribute) !== true
}

/**
 * Whether a name of a record's form is another's, and no record of ours. What others may write to, or own, is no proof of anything: but a
 * record to which `chmod -R`, `chown -R` or `setfacl -R` came may hold a hold, a pin and history, and so it never counts as absent. Only
 * where a stranger can give a file of theirs this name, or without fs.protected_hardlinks any other file, it must stop no publication.
 * Elsewhere who can make the name can stop holdfast in other ways: the directory's owner, or who may write to it while it is not sticky,
 * can take its lock away.
 * @throws DurableWriteError where it may be ours, and others may write to it
 */
async function isTaken(
  fs: FileSystem,
  parent: Descriptor,
  entry: string,
  { type, uid, gid, mode, links }: Attributes,
  takesStrangers: TakesStrangers,
): Promise<boolean> {
  if (type !== 'file') return true
  const doubtOf = (path: string) => othersWrite({ path, kind: 'file', uid, gid, mode }, fs.user.uid)
  if (doubtOf(entry) === undefined) return false
  const isStrangers = uid !== 0 && uid !== fs.user.uid
  if ((isStrangers || links > 1) && takesStrangers(await fs.attributes(parent), fs)) return true
  // For people: without /proc its name has to do.
  const directory = await fs.readLinkPath(`/proc/self/fd/${parent}`).catch(() => '')
  const path = join(directory, entry)
  throw unfit(`holdfast cannot trust its publication record: ${doubtOf(path) ?? ''}`, {
    code: 'EPERM',
    syscall: 'fstat',
    path,
    advice: isStrangers
      ? `run holdfast as user ${uid}; or, where "chown -R" gave it away, make sure that nobody has changed it, then run "chown ${fs.user.uid} ${path}"`
      : `make sure that nobody has changed it, then run "chmod 600 ${path}"`,
  })
}

/** The record of the current publication: staged with the content, marked once the content is known to be durable. */
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

  /** From here on, the record's content is durable. The mark needs no sync: under another boot it has no use. */
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

/** How often the names are listed where each time the record has gone before it is opened. */
const looks = 4

/** Hands over a target's parent and records, without a lock; undefined where the parent does not exist. */
export async function withRecord<T>(
  fs: FileSystem,
  target: string,
  use: (parent: Descriptor, name: string, records: readonly StoredRecord[], missed: boolean) => Promise<T | undefined>,
): Promise<T | undefined> {
  return atPlace(fs, checkTarget(target), async ({ anchor, name, missing }) => {
    if (missing.length > 0) return undefined
    const read = (): Promise<Records> => readRecords(fs, anchor, name, namesFor(name))
    let records = await read()
    // The only record went while it was read: a publication in the same instant has put another in its place.
    for (let again = 1; again < looks && records.missed && records.valid.length === 0; again++) records = await read()
    return use(anchor, name, records.valid, records.missed)
  })
}

/*
 * Lines that holdfast adds to the record of the published content, without the target's lock: a publication in the same instant writes
 * another record. Only to write a record anew takes the lock.
 */

/** Appends to the record of this digest, if it is still the newest one; answers whether it was, and a reader sees the line. */
async function appendTo(fs: FileSystem, target: string, digest: string, appendix: Appendix): Promise<boolean> {
  const added = await appendBy(fs, target, digest, (area, name) => tryAppend(area, name, appendix))
  if (added !== false) return added ?? false
  const locked = await withRecord(fs, target, (directory, name) =>
    inScope(fs, async (scope) => {
      const parent = { directory, attributes: await fs.attributes(directory) }
      await lock(scope, { parent, name: namesFor(name).lock, target, timeout: appendPatience, signal: undefined })
      return appendBy(fs, target, digest, async (area, name) => {
        await append(area, name, appendix)
        return true
      })
    }),
  )
  return locked ?? false
}

/**
 * Has a line added to each record of this digest: the newest may be of a publication that was aborted, and an older one speaks to readers.
 * undefined where there is none, or a newer publication has just removed it; false where one of them needs the target's lock.
 */
async function appendBy(
  fs: FileSystem,
  target: string,
  digest: string,
  add: (area: RecordArea, name: string) => Promise<boolean>,
): Promise<boolean | undefined> {
  return withRecord(fs, target, async (parent, name, records) => {
    const names = namesFor(name)
    let added: true | undefined
    for (const { sequence } of records.filter(({ after }) => after === digest)) {
      const isAdded = await add({ fs, parent, names }, names.record(sequence)).catch((error: unknown) => {
        if (codeOf(error) !== 'ENOENT') throw error
        return undefined
      })
      if (isAdded === false) return false
      added ??= isAdded
    }
    return added
  })
}

/** Records that a hook has run for the publication with this digest. False where a newer one has taken its place. */
export async function completeHook(fs: FileSystem, target: string, digest: string, hook: string): Promise<boolean> {
  return appendTo(fs, target, digest, { hook })
}

/** Records newer versions of some of the objects, which gave the same content: after a restart the agent accepts no older ones. */
export async function recordObjects(
  fs: FileSystem,
  target: string,
  digest: string,
  objects: readonly RecordedObject[],
): Promise<boolean> {
  return appendTo(fs, target, digest, { objects })
}

/*
 * Every line after a record's first comes through here. A write that stops in the middle of a line (a full disk kept 40 bytes of 83) leaves
 * a torn one, and a reader that stops at the first damaged line, as that of 0.2.0 does, would miss all that follows it. So each call checks
 * first: it writes a damaged record, or one with too many lines, anew, under the old one's name by one rename.
 *
 * Processes that add lines exclude each other by a flock on the record itself. Only the holder of the target's lock writes a record anew or
 * removes one, so that the rename brings none back.
 */

/** Bytes that the lines of a record may have beside its first, beyond the length of that: the objects in them are as long as those in it. */
const mostAdded = 64 * 1024

/** Milliseconds to wait for another process that adds a line, or that publishes. */
const appendPatience = 5_000
const lockPollInterval = 20

/** Adds a line to a record, under the target's lock: readers see it from then on. @throws what the system answers, and ENOENT where it has gone */
export async function append(area: RecordArea, name: string, appendix: Appendix): Promise<void> {
  await add(area, name, encodeAppendix(appendix), true)
}

/** The same without the target's lock. False, and nothing is done, where the record must be written anew, which needs it. */
async function tryAppend(area: RecordArea, name: string, appendix: Appendix): Promise<boolean> {
  return add(area, name, encodeAppendix(appendix), false)
}

async function add(area: RecordArea, name: string, line: Uint8Array, mayRewrite: boolean): Promise<boolean> {
  const { fs, parent } = area
  return inScope(fs, async (scope) => {
    const { file, attributes } = await openAlone(scope, parent, name)
    const content = await readWhole(fs, file, attributes.size)
    const { lines, isDamaged } = readLines(content.toString('utf8'))
    const most = 2 * Buffer.byteLength(lines[0]?.text ?? '') + mostAdded
    if (!isDamaged && content.length + line.length <= most) {
      await addLine(fs, file, line, content.length)
      return true
    }
    if (!mayRewrite) return false
    await rewrite(scope, area, name, Buffer.concat([joined(name, content, {}), line]), attributes)
    return true
  })
}

/** Changes what a record says otherwise, under the target's lock. @throws as append() */
export async function amend(area: RecordArea, name: string, changes: Partial<RecordBody>): Promise<void> {
  await inScope(area.fs, async (scope) => {
    const { file, attributes } = await openAlone(scope, area.parent, name)
    const content = await readWhole(area.fs, file, attributes.size)
    await rewrite(scope, area, name, joined(name, content, changes), attributes)
  })
}

/** A record whose first line says what the others said. Those of a later version go, as a power cut may take them. @throws where the first is damaged */
function joined(name: string, content: Uint8Array, changes: Partial<RecordBody>): Uint8Array {
  const text = Buffer.from(content).toString('utf8')
  const [body] = wholeLines(text)
  const record = isBody(body) ? parseRecord(text, body.name, 0, body.boot) : undefined
  if (record === undefined) throw damaged(name, 'its first line is damaged')
  return encoded(recordBody(record, changes), record)
}

/** Writes a line at the end of a record that has `size` bytes. @throws where it does not stand there as a whole afterwards, or nobody knows */
async function addLine(fs: FileSystem, file: Descriptor, line: Uint8Array, size: number): Promise<void> {
  await fs.write(file, line)
  const { size: now } = await fs.attributes(file).catch((error: unknown) => {
    throw isSystemError(error) ? unseen(error) : error
  })
  if (now !== size + line.length) throw damaged('the record', 'another program wrote to it meanwhile')
}

/** Readers see the line by now, unless another program wrote in the same instant: an error may not say that nothing was changed. */
function unseen(error: SystemError & Error): DurableWriteError {
  const { code, syscall, message } = error
  return new DurableWriteError(`could not look at the record after a line was added: ${message}`, {
    ...{ code, syscall, path: 'the record', published: true, cause: error },
    state: 'its readers may see the line',
    advice: `${adviceFor(code) ?? 'check the kernel log'}, and repeat the call`,
  })
}

/**
 * Opens a record that no other process adds to until the scope ends. If another process has written it anew meanwhile, opens the new inode.
 */
async function openAlone(
  scope: Scope,
  parent: Descriptor,
  name: string,
): Promise<{ file: Descriptor; attributes: Attributes }> {
  const deadline = clock.now() + appendPatience
  for (;;) {
    const file = await scope.keep(scope.fs.openAppend(parent, name))
    while (!scope.fs.tryLock(file)) {
      if (clock.now() >= deadline) throw busy(name)
      await sleep(lockPollInterval)
    }
    const attributes = await scope.fs.attributes(file)
    if (attributes.links > 0) return { file, attributes }
    await scope.close(file)
  }
}

/**
 * Puts this text in the place of a record. It is as durable as before: fsync precedes the rename, and either of the two files, after a
 * power cut, vouches for the same content.
 */
async function rewrite(
  scope: Scope,
  area: RecordArea,
  name: string,
  content: Uint8Array,
  { uid, gid, mode }: Attributes,
): Promise<void> {
  const { fs, parent } = area
  await replaceEntry(area, name, async (staging) => {
    const file = await scope.keep(fs.createFile(parent, staging))
    await fs.write(file, content)
    await setMetadata(fs, file, { target: name, mode: mode & ~0o022, owner: { uid, gid } })
    await fsyncAll(fs, [file])
  })
}

function damaged(name: string, why: string): DurableWriteError {
  return new DurableWriteError(`could not add a line to ${name}: ${why}`, {
    code: 'EIO',
    syscall: 'write',
    path: name,
    state: 'the lines before it count',
  })
}

function busy(name: string): DurableWriteError {
  return new DurableWriteError(`another process adds a line to ${name}`, {
    code: 'EAGAIN',
    syscall: 'flock',
    path: name,
    reason: 'Busy',
    state: 'nothing was changed',
    advice: 'try again when it is done',
  })
}
