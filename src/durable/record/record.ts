import { objectName } from '../../message-text.js'
import type { RecordedPlace, Tree, TreeEntry } from '../path/index.js'
import { isAgentMark, isText, knownFields } from './record-fields.js'
import { encodeLine, wholeLines } from '../../checked-lines.js'
import { isTakenOver } from './taken-over.js'
import type {
  AgentMark,
  Cause,
  Generation,
  History,
  Hold,
  LetGoMark,
  Pin,
  Publication,
  Publisher,
  RecordedObject,
  Relocation,
} from '../types.js'

/*
 * The publication record, `.holdfast-ID.SEQUENCE` beside the target, 0600: the published content, its objects, and the hooks that have yet
 * to run. A file of lines, each `SHA-256 of the JSON, a space, JSON`. The first line is the record and becomes durable in the publication's
 * first barrier, before the exchange; later lines are appended without fsync:
 *
 *   {"settled":true}     the exchange is durable, too
 *   {"hook":"NAME"}      this hook has run
 *   {"objects":[…]}      newer versions of some objects, which gave the same content
 *   {"attributes":…}     the digest of its ACLs and user attributes since another program changed them
 *   {"within":"PATH"}    found at this place of the file system since, and its ancestors are durable
 *   {"keepsAttributes":…} whether the administrator sets mode and owner from now on
 *   {"agent":…}          which agent keeps it, where the record named none
 *
 * A power cut may take an appended line away at no cost: under another boot, the content came from the disk, and a hook runs at least once.
 * A line that does not match its checksum counts as absent. record-files.ts adds all but the first.
 */

export type RecordKind = 'exchange' | 'symlink' | 'file'

/** What an exchange can leave under a staging name by this program's own doing: see quarantine.ts. Numbers of inodes, in decimal. */
export interface StagedInodes {
  readonly name: string
  readonly staged: string
  readonly old: string
  /** The entries of the old content, where no other record has them: another program has added all others since. */
  readonly entries?: readonly KnownEntry[]
}

/** What a publication by exchange has to tell. */
export interface Exchanged {
  readonly staging?: StagedInodes
  readonly retiring?: RetiredTree
  /** The old content, copied. */
  readonly generation?: Generation
}

/** Old content that stays under its staging name for those who use it: see retired.ts. */
export interface RetiredTree {
  readonly name: string
  /** In decimal. */
  readonly inode: string
  /** Milliseconds since the epoch: it goes then in any case. */
  readonly until: number
  /** Its entries at its reading: another program has added all others since. */
  readonly entries: readonly KnownEntry[]
  /** It had too many to read, and goes with all that it holds. */
  readonly goesWhole?: true
}

/** An entry, by what tells its content from another's. */
export type KnownEntry = Pick<TreeEntry, 'path' | 'type' | 'sha256'>

export interface RecordBody {
  readonly version: 1
  /** The target's basename. */
  readonly name: string
  readonly kind: RecordKind
  readonly boot: string
  /** Digest of the target before; null where there was none. */
  readonly before: string | null
  readonly after: string
  /** The old content was this program's, too, drifted or not: neither a foreign directory nor none. */
  readonly owned: boolean
  /** Milliseconds since the epoch. */
  readonly publishedAt: number
  readonly objects: readonly RecordedObject[]
  readonly hooks: readonly string[]
  readonly entries: readonly Omit<TreeEntry, 'label' | 'changed'>[]
  /** Only where something is exchanged. */
  readonly staging?: StagedInodes
  /** Absent in records of version 0.1.0: they prove nothing about durability. */
  readonly place?: RecordedPlace
  /** Which program publishes here; absent after a by-hand call, and in older records. */
  readonly publisher?: Publisher
  /** Digest of the ACLs and user attributes that its entries got; null for none. Absent in older records. */
  readonly attributes?: string | null
  /** Mode and owner are the administrator's, as ACLs are: that they were changed is no drift. Absent: no. */
  readonly keepsAttributes?: boolean
  /** What a reader must understand to publish after this record. */
  readonly requires?: readonly string[]
  /** Stops every publication while it is in force. */
  readonly hold?: Hold
  /** Old content that may still be there; absent where there is none. */
  readonly retired?: readonly RetiredTree[]
  /** An operator went back to this content, and it stays. */
  readonly pin?: Pin
  /** Which earlier contents stay beside it; absent where none do. */
  readonly history?: History
  /** Absent for `published`. */
  readonly why?: Cause
  /** The target is being taken away: see removal.ts. */
  readonly removing?: Removing
  /** Its content came from another path: see relocation.ts. */
  readonly relocation?: Relocation
  /** Its content moves to this path, and the agent keeps the two equal. */
  readonly movedTo?: string
  readonly agent?: AgentMark
  readonly letGo?: LetGoMark
}

/** That a removal has begun. */
export interface Removing {
  /** Milliseconds since the epoch. */
  readonly since: number
}

export interface StoredRecord extends RecordBody {
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

export type Appendix =
  | { settled: true }
  | { hook: string }
  | { objects: readonly RecordedObject[] }
  | { within: string }
  | { attributes: string | null }
  | { keepsAttributes: boolean }
  | { agent: AgentMark }

/** What may stand in a line that was appended. */
export type Added = Readonly<
  Record<'settled' | 'hook' | 'objects' | 'within' | 'attributes' | 'keepsAttributes' | 'agent', unknown>
>

export function encodeRecord(body: RecordBody): Uint8Array {
  return encodeLine(body)
}

export function encodeAppendix(appendix: Appendix): Uint8Array {
  return encodeLine(appendix)
}

/** undefined for a record that is torn, or not of this target. */
export function parseRecord(text: string, name: string, sequence: number, boot: string): StoredRecord | undefined {
  const [body, ...rest] = wholeLines(text)
  if (!isBody(body) || body.name !== name) return undefined
  let committed = false
  let { objects, place, attributes, keepsAttributes, agent } = body
  const done = new Set<string>()
  for (const line of rest as Partial<Added>[]) {
    // A second record line, by some mishap: its objects are older than those of the lines after the first.
    if (isBody(line)) continue
    if (line.settled === true) committed = true
    if (isText(line.hook)) done.add(line.hook)
    if (knownFields.objects(line.objects)) objects = newerObjects(objects, line.objects as RecordedObject[])
    if (line.attributes === null || isText(line.attributes)) attributes = line.attributes
    if (typeof line.keepsAttributes === 'boolean') keepsAttributes = line.keepsAttributes
    if (isText(line.within) && place) place = { ...place, within: line.within }
    if (isAgentMark(line.agent)) agent = line.agent
  }
  return {
    ...body,
    objects,
    ...(agent && { agent }),
    ...(place && { place }),
    ...(attributes !== undefined && { attributes }),
    ...(keepsAttributes !== undefined && { keepsAttributes }),
    sequence,
    committed,
    trusted: committed || body.boot !== boot,
    otherBoot: body.boot !== boot,
    unknown: Object.fromEntries(Object.entries(body).filter(([field]) => !(field in knownFields))),
    pendingHooks: body.hooks.filter((hook) => !done.has(hook)),
  }
}

/** None of them is forgotten. */
const fields: Readonly<Record<keyof RecordBody, (value: unknown) => boolean>> = knownFields

/** A right checksum is not enough: accepts only the shape of a record, without any field that this version does not understand. */
export function isBody(line: unknown): line is RecordBody {
  const body = (line ?? {}) as Readonly<Record<string, unknown>>
  return Object.entries(fields).every(([field, isSuch]) => isSuch(body[field]))
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

/** The body of a record that says the same as this one, with the operator's word replaced. */
export function recordBody(
  record: StoredRecord,
  word: { readonly [Field in 'hold' | 'pin' | 'removing']: RecordBody[Field] | undefined },
): RecordBody {
  const { pendingHooks, unknown, retired, history } = record
  const { hold, ...more } = word
  const isDemanded = (field: string): boolean => demanded.some((one) => one === field)
  const isKept = (field: string): boolean => field in knownFields && field !== 'requires' && !isDemanded(field)
  const said = Object.fromEntries(Object.entries(record).filter(([field]) => isKept(field))) as unknown as RecordBody
  return { ...unknown, ...said, hooks: pendingHooks, ...demanding({ hold, retired, history, ...more }) }
}

/**
 * The body of the record under which a removal takes a target away. `staging`: where it goes. `before` is `after`: the absent target proves
 * no aborted publication.
 */
export function removalBody(record: StoredRecord, removing: Removing, staging: StagedInodes): RecordBody {
  const { hold, pin, after } = record
  return { ...recordBody(record, { hold, pin, removing }), before: after, staging }
}

type Demanding = Partial<Pick<RecordBody, (typeof demanded)[number]>>

/** Fields that an older version would ignore, with harm. */
const demanded = ['hold', 'retired', 'history', 'pin', 'removing'] as const

/** Such fields, and the word that makes an older version refuse the record instead. */
export function demanding(fields: {
  readonly [Field in keyof Demanding]: Demanding[Field] | undefined
}): Pick<RecordBody, keyof Demanding | 'requires'> {
  const isSaid = (value: unknown): boolean => value !== undefined && !(Array.isArray(value) && value.length === 0)
  const said = Object.fromEntries(Object.entries(fields).filter(([, value]) => isSaid(value))) as Demanding
  const generations = said.history?.generations ?? []
  const requires = [
    ...Object.keys(said).filter((field) => field !== 'history' || generations.length > 0),
    ...(generations.some(isTakenOver) ? ['adopted'] : []),
  ]
  return { ...said, ...(requires.length > 0 && { requires }) }
}

/** What says whether this version understands a record. */
interface Understood extends Partial<Record<'version' | 'requires', unknown>> {
  /** A build before this one could leave a symbolic link where a directory had been. */
  readonly relocation?: { readonly as?: unknown } | null
  readonly removing?: { readonly link?: unknown } | null
}

/** Whether an intact record is of a version that this one does not understand: it must neither be removed nor published over. */
export function isOfOtherVersion(text: string): boolean {
  const [body] = wholeLines(text) as Understood[]
  if (body?.version === undefined) return false
  const { version, requires, relocation, removing } = body
  return version !== 1 || !knownFields.requires(requires) || relocation?.as === 'link' || removing?.link !== undefined
}

/** The recorded objects, those named again in their newer version. */
export function newerObjects(objects: readonly RecordedObject[], updates: readonly RecordedObject[]): RecordedObject[] {
  const merged = new Map([...objects, ...updates].map((object) => [objectName(object), object]))
  return [...merged.values()]
}
