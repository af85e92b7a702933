import { objectName } from '../../message-text.js'
import type { Tree } from '../path/index.js'
import {
  enveloped,
  isBody,
  isText,
  isUnderstood,
  knownFields,
  type RecordBody,
  type RetiredTree,
  type StagedInodes,
  unknownIn,
} from './record-fields.js'
import { encodeLine, wholeLines } from '../../checked-lines.js'
import type { Generation, Hold, Pin, Publication, RecordedObject } from '../types.js'

/*
 * The publication record, `.holdfast-ID.SEQUENCE` beside the target, 0600: the published content, its objects, and the hooks that have yet
 * to run. A file of lines, each `SHA-256 of the JSON, a space, JSON`. The first line is the record and becomes durable in the publication's
 * first barrier, before the exchange; later lines are appended without fsync:
 *
 *   {"settled":true}     the exchange is durable, too
 *   {"hook":"NAME"}      this hook has run
 *   {"objects":[…]}      newer versions of some objects, which gave the same content
 *
 * A power cut may take an appended line away at no cost: under another boot, the content came from the disk, and a hook runs at least once.
 * A line that does not match its checksum counts as absent. What else changes is written anew, as a first line; record-files.ts does
 * both.
 */

/** What a publication by exchange has to tell. */
export interface Exchanged {
  readonly staging?: StagedInodes
  readonly retiring?: RetiredTree
  /** The old content, copied. */
  readonly generation?: Generation
}

export type StoredRecord = RecordBody & {
  readonly sequence: number
  /** Marked so, as `settled`: it was published for certain. */
  readonly committed: boolean
  /** Known to be durable where it was written: marked committed, or written under another boot. judge.ts asks whether that is here. */
  readonly trusted: boolean
  /** Written under another boot than this one. */
  readonly otherBoot: boolean
  /** Fields of a later version. */
  readonly unknown: Readonly<Record<string, unknown>>
  readonly pendingHooks: readonly string[]
}

export type Appendix = { settled: true } | { hook: string } | { objects: readonly RecordedObject[] }

export function encodeRecord(body: RecordBody): Uint8Array {
  return encodeLine(enveloped(body))
}

export function encodeAppendix(appendix: Appendix): Uint8Array {
  return encodeLine(appendix)
}

/** undefined for a record that is torn, or not of this target. */
export function parseRecord(text: string, name: string, sequence: number, boot: string): StoredRecord | undefined {
  const [body, ...rest] = wholeLines(text)
  if (!isBody(body) || body.name !== name) return undefined
  let committed = false
  let { objects, attributes } = body
  const done = new Set<string>()
  for (const line of rest as Partial<Record<'settled' | 'hook' | 'objects' | 'attributes', unknown>>[]) {
    // A second record line, by some mishap: its objects are older than those of the lines after the first.
    if (isBody(line)) continue
    if (line.settled === true) committed = true
    if (isText(line.hook)) done.add(line.hook)
    if (knownFields.objects.is(line.objects)) objects = newerObjects(objects, line.objects)
    // Earlier builds added this one.
    if (knownFields.attributes.is(line.attributes)) attributes = line.attributes
  }
  return {
    ...body,
    objects,
    attributes,
    sequence,
    committed,
    trusted: committed || body.boot !== boot,
    otherBoot: body.boot !== boot,
    unknown: unknownIn(body),
    pendingHooks: body.hooks.filter((hook) => !done.has(hook)),
  }
}

export type Described = Pick<RecordBody, 'after' | 'entries' | 'keepsAttributes'>

/** Whether a record is of what the disk holds: of just that, or of that content where mode and owner are the administrator's. */
export function describes(record: Described, tree: Pick<Tree, 'digest' | 'entries'> | undefined): boolean {
  if (tree === undefined || record.after === tree.digest) return tree !== undefined
  const { entries, keepsAttributes } = record
  if (keepsAttributes !== true || entries.length !== tree.entries.length) return false
  return tree.entries.every(({ path, type, sha256 }, index) => {
    const entry = entries[index]
    return entry?.path === path && entry.type === type && entry.sha256 === sha256
  })
}

/** What on the disk is not as it was published. */
export function compare(
  record: Pick<Described, 'entries' | 'keepsAttributes'>,
  tree: Tree | undefined,
): Publication['differences'] {
  const actual = new Map((tree?.entries ?? []).map((entry) => [entry.path, entry]))
  const differences: Publication['differences'] = []
  for (const entry of record.entries) {
    const found = actual.get(entry.path)
    actual.delete(entry.path)
    const path = entry.path === '' ? '.' : entry.path
    if (!found) differences.push({ path, problem: 'missing' })
    else if (found.type !== entry.type) differences.push({ path, problem: 'type' })
    else if (found.sha256 !== entry.sha256) differences.push({ path, problem: 'content' })
    else if (record.keepsAttributes === true) continue
    else if (found.mode !== entry.mode) differences.push({ path, problem: 'mode' })
    else if (found.uid !== entry.uid || found.gid !== entry.gid) differences.push({ path, problem: 'owner' })
  }
  for (const path of actual.keys()) differences.push({ path, problem: 'unexpected' })
  if (tree?.isCut === true) differences.push({ path: '.', problem: 'more' })
  return differences
}

/** The digest by which a record names what the disk holds, where it is of that; else the disk's own. */
export function digestBy(record: Described, tree: Tree | undefined): string | undefined {
  return describes(record, tree) ? record.after : tree?.digest
}

/** Until its end, by the wall clock: a wrong clock that stands before the hold's beginning does not end it. */
export function isInForce(hold: Hold | undefined, now: number): hold is Hold {
  return hold !== undefined && (hold.until === null || now < hold.until)
}

/** Until its end, by the wall clock. Only the publisher knows whether newer content has come. */
export function isPinned(pin: Pin | undefined, now: number): pin is Pin {
  return pin !== undefined && (typeof pin.until !== 'number' || now < pin.until)
}

/** `body`, with the `settled` line of its predecessor. */
export function encoded(body: RecordBody, { committed }: Pick<StoredRecord, 'committed'>): Uint8Array {
  return Buffer.concat([encodeRecord(body), ...(committed ? [encodeAppendix({ settled: true })] : [])])
}

/** The body of a record that says the same as this one, but for these fields. */
export function recordBody(record: StoredRecord, changes: Partial<RecordBody>): RecordBody {
  const { pendingHooks, unknown } = record
  const said = Object.fromEntries(Object.entries(record).filter(([field]) => field in knownFields))
  return { ...unknown, ...(said as unknown as RecordBody), hooks: pendingHooks, ...changes }
}

/** Whether an intact record is of a version that this one does not understand: it must neither be removed nor published over. */
export function isOfOtherVersion(text: string): boolean {
  const [body] = wholeLines(text) as { readonly version?: unknown }[]
  return body?.version !== undefined && !isUnderstood(body)
}

/** The recorded objects, those named again in their newer version. */
function newerObjects(objects: readonly RecordedObject[], updates: readonly RecordedObject[]): RecordedObject[] {
  const merged = new Map([...objects, ...updates].map((object) => [objectName(object), object]))
  return [...merged.values()]
}
