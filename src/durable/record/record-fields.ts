import { generationPattern, type Identity, type RecordedPlace, stagingPattern, type TreeEntry } from '../path/index.js'
import { isTakenOver } from './taken-over.js'
import {
  publicationCauses,
  relocationStates,
  type AgentMark,
  type Generation,
  type History,
  type Hold,
  type LetGoMark,
  type Pin,
  type Publisher,
  type RecordedObject,
  type Relocation,
} from '../types.js'

/*
 * The fields of a record, in one table: what each is about, what it may hold, and what it asks of its reader. Its type, its check, how it is
 * written again and which readers refuse it come from here.
 */

/** Whether a value may stand somewhere: a right checksum alone does not make a record valid. */
type Is<T> = (value: unknown) => value is T

/** What a record can ask of its reader, and this version understands. */
const understood = ['hold', 'retired', 'history', 'pin', 'removing', 'adopted'] as const
type Demand = (typeof understood)[number]

interface RecordField<T> {
  readonly is: Is<T>
  /** What its reader must understand to publish after it: an older version would ignore this, with harm. */
  readonly demands: (said: NonNullable<T>) => readonly Demand[]
}

const always = <T>(is: Is<T>): RecordField<T> => ({ is, demands: () => [] })

const maybe = <T>(is: Is<T>, demands: RecordField<T>['demands'] = () => []): RecordField<T | undefined> => ({
  is: orUndefined(is),
  demands,
})

/** What an exchange can leave under a staging name by this program's own doing: see quarantine.ts. Numbers of inodes, in decimal. */
export interface StagedInodes {
  readonly name: string
  readonly staged: string
  readonly old: string
  /** The entries of the old content, where no other record has them: another program has added all others since. */
  readonly entries?: readonly KnownEntry[]
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

export const isText: Is<string> = (value): value is string => typeof value === 'string'
const isBoolean: Is<boolean> = (value): value is boolean => typeof value === 'boolean'
const isNumber: Is<number> = (value): value is number => Number.isSafeInteger(value)
const isNatural: Is<number> = (value): value is number => isNumber(value) && value >= 0

/** Milliseconds since the epoch: the last that a Date can hold. */
const latestTime = 8.64e15
const isTime: Is<number> = (value): value is number => isNumber(value) && Math.abs(value) <= latestTime

/** Absolute, since holdfast reads it and publishes to it. */
const isPath: Is<string> = (value): value is string => isText(value) && value.startsWith('/') && !value.includes('\0')

const like =
  (pattern: RegExp): Is<string> =>
  (value): value is string =>
    isText(value) && pattern.test(value)

const literal =
  <const T>(...values: readonly T[]): Is<T> =>
  (value): value is T =>
    values.some((one) => one === value)

const anyOf =
  <A, B>(isOne: Is<A>, isOther: Is<B>): Is<A | B> =>
  (value): value is A | B =>
    isOne(value) || isOther(value)

function orUndefined<T>(is: Is<T>): Is<T | undefined> {
  return anyOf(is, literal(undefined))
}

const allOf =
  <T>(isOne: Is<T>): Is<T[]> =>
  (value): value is T[] =>
    Array.isArray(value) && value.every(isOne)

/** The compiler asks for each field of the type. */
const shape =
  <T extends object>(fields: { readonly [Name in keyof T]-?: Is<T[Name]> }): Is<T> =>
  (value): value is T => {
    const object = (value ?? {}) as Readonly<Record<string, unknown>>
    return Object.entries<Is<unknown>>(fields).every(([name, is]) => is(object[name]))
  }

/** Compared and never interpreted: a later version may know more of them. */
const isWord = <T extends string>(): Is<T> => isText as Is<T>

const isObject = shape<RecordedObject>({
  kind: isText,
  namespace: isText,
  name: isText,
  uid: isText,
  resourceVersion: isText,
  paths: allOf(isText),
  combined: orUndefined(allOf(isText)),
  others: orUndefined(allOf(isText)),
  gone: orUndefined(isBoolean),
})

const known = { path: isText, type: isWord<TreeEntry['type']>(), sha256: isText }
const isKnown = shape<KnownEntry>(known)

/** A record may make holdfast read, move or remove staging names alone. */
const isStagingName = like(stagingPattern)

const isIdentity = shape<Identity>({ inode: isText, birth: isText })
const isCause = literal(...publicationCauses)

const isGeneration = shape<Generation>({
  name: like(generationPattern),
  sequence: isNumber,
  digest: isText,
  publishedAt: isTime,
  replacedAt: isTime,
  replacedIn: orUndefined(shape({ boot: isText, uptime: isTime })),
  why: isCause,
  objects: allOf(isObject),
})

const isAgentMark = shape<AgentMark>({ id: isText, publishedAt: isTime })

/** The fields that this version knows; any other is carried into the next record as it is. */
export const knownFields = {
  /** The target's basename. */
  name: always(isText),
  kind: always(literal('exchange', 'symlink', 'file')),
  boot: always(isText),
  /** Digest of the target before; null where there was none. */
  before: always(anyOf(isText, literal(null))),
  after: always(isText),
  /** The old content was this program's, too, drifted or not: neither a foreign directory nor none. */
  owned: always(isBoolean),
  /** Milliseconds since the epoch. */
  publishedAt: always(isTime),
  objects: always(allOf(isObject)),
  hooks: always(allOf(isText)),
  entries: always(
    allOf(
      shape<KnownEntry & Pick<TreeEntry, 'mode' | 'uid' | 'gid' | 'size'>>({
        ...known,
        mode: isNumber,
        uid: isNumber,
        gid: isNumber,
        size: orUndefined(isNumber),
      }),
    ),
  ),
  /** Only where something is exchanged. */
  staging: maybe(
    shape<StagedInodes>({ name: isStagingName, staged: isText, old: isText, entries: orUndefined(allOf(isKnown)) }),
  ),
  place: always(
    shape<RecordedPlace>({ within: isText, parent: isIdentity, target: isIdentity, replaced: orUndefined(isIdentity) }),
  ),
  /** Which program publishes here; absent after a by-hand call. */
  publisher: maybe(isWord<Publisher>()),
  /** Digest of the ACLs and user attributes that its entries got; null for none. */
  attributes: always(anyOf(isText, literal(null))),
  /** Mode and owner are the administrator's, as ACLs are: that they were changed is no drift. Absent: no. */
  keepsAttributes: maybe(isBoolean),
  /** Stops every publication while it is in force. */
  hold: maybe(shape<Hold>({ reason: isText, since: isTime, until: anyOf(isTime, literal(null)) }), () => ['hold']),
  /** Old content that may still be there. */
  retired: maybe(
    allOf(
      shape<RetiredTree>({
        name: isStagingName,
        inode: isText,
        until: isTime,
        entries: allOf(isKnown),
        goesWhole: orUndefined(literal(true)),
      }),
    ),
    ({ length }) => (length > 0 ? ['retired'] : []),
  ),
  /** Which earlier contents stay beside it; absent where none do. */
  history: maybe(
    shape<History>({
      keep: isNatural,
      maxAge: anyOf(isTime, literal(null)),
      hooks: orUndefined(allOf(isText)),
      generations: allOf(isGeneration),
    }),
    ({ generations }) => [
      ...(generations.length > 0 ? (['history'] as const) : []),
      ...(generations.some(isTakenOver) ? (['adopted'] as const) : []),
    ],
  ),
  /** An operator went back to this content, and it stays. */
  pin: maybe(
    shape<Pin>({
      reason: isText,
      since: isTime,
      until: anyOf(isTime, literal('newer', 'released')),
      from: allOf(isObject),
      digest: isText,
    }),
    () => ['pin'],
  ),
  /** Absent for `published`. */
  why: maybe(isCause),
  /** The target is being taken away: see removal.ts. */
  removing: maybe(shape<{ readonly since: number }>({ since: isTime }), () => ['removing']),
  /** Its content came from another path: see relocation.ts. */
  relocation: maybe(
    shape<Relocation>({ from: isPath, as: literal('removed'), state: literal(...relocationStates), since: isTime }),
  ),
  /** Its content moves to this path, and the agent keeps the two equal. */
  movedTo: maybe(isPath),
  agent: maybe(isAgentMark),
  letGo: maybe(shape<LetGoMark>({ since: isTime, publishedAt: isTime })),
} as const

type KnownFields = typeof knownFields
type Fixed<T> = T extends readonly (infer One)[] ? readonly One[] : T
type Said<Name extends keyof KnownFields> = KnownFields[Name] extends RecordField<infer T> ? Fixed<T> : never
type Optional = { [Name in keyof KnownFields]: undefined extends Said<Name> ? Name : never }[keyof KnownFields]

/** What a record says. */
export type RecordBody = { readonly [Name in Exclude<keyof KnownFields, Optional>]: Said<Name> } & {
  readonly [Name in Optional]?: Said<Name>
}

export type RecordKind = RecordBody['kind']

const table = Object.entries(knownFields) as [keyof RecordBody, RecordField<unknown>][]

/** What a record begins with: an older version refuses it by the demands of its fields. */
interface Envelope {
  readonly version: 1
  readonly requires?: readonly Demand[] | undefined
}

export const isUnderstood = shape<Envelope>({
  version: literal(1),
  requires: orUndefined(allOf(literal(...understood))),
})

/** Accepts only the shape of a record, without any demand that this version does not understand. */
export function isBody(line: unknown): line is RecordBody {
  const body = (line ?? {}) as Readonly<Record<string, unknown>>
  return isUnderstood(line) && table.every(([name, { is }]) => is(body[name]))
}

/** The whole first line of a record. */
export function enveloped(body: RecordBody): RecordBody & Envelope {
  const requires = table.flatMap(([name, { demands }]) => {
    const said = body[name]
    return said === undefined || said === null ? [] : demands(said)
  })
  return { version: 1, ...body, ...(requires.length > 0 && { requires }) }
}

/** What a record says that a later version has put there. */
export function unknownIn(body: RecordBody): Readonly<Record<string, unknown>> {
  const isLater = (name: string): boolean => !(name in knownFields || name === 'version' || name === 'requires')
  return Object.fromEntries(Object.entries(body).filter(([name]) => isLater(name)))
}
