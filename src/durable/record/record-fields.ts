import { generationPattern, stagingPattern, isRecordedPlace } from '../path/index.js'
import { publicationCauses, relocationStates, type AgentMark } from '../types.js'

/* What each field of a record may hold: a right checksum alone does not make a record valid. */

/** Milliseconds since the epoch: the last that a Date can hold. */
const latestTime = 8.64e15

/** What a record can require of its reader, and this version understands. */
const understood: ReadonlySet<unknown> = new Set(['hold', 'retired', 'history', 'pin', 'removing', 'adopted'])

/** The fields of a record that this version knows, and what each may hold; any other is carried into the next record as it is. */
export const knownFields = {
  version: (value) => value === 1,
  name: isText,
  kind: (value) => value === 'exchange' || value === 'symlink' || value === 'file',
  boot: isText,
  before: (value) => value === null || isText(value),
  after: isText,
  owned: (value) => typeof value === 'boolean',
  publishedAt: isTime,
  objects: (value) => isListOf(value, isObject),
  hooks: (value) => isListOf(value, isText),
  entries: (value) => isListOf(value, isEntry),
  staging: (value) => value === undefined || isStaged(value),
  place: isRecordedPlace,
  publisher: (value) => value === undefined || isText(value),
  attributes: (value) => value === undefined || value === null || isText(value),
  keepsAttributes: (value) => value === undefined || typeof value === 'boolean',
  requires: (value) => value === undefined || isListOf(value, (one) => understood.has(one)),
  hold: (value) => value === undefined || isHold(value),
  retired: (value) => value === undefined || isListOf(value, isRetired),
  history: (value) => value === undefined || isHistory(value),
  pin: (value) => value === undefined || isPin(value),
  why: (value) => value === undefined || isCause(value),
  removing: (value) => value === undefined || isRemoving(value),
  relocation: (value) => value === undefined || isRelocation(value),
  movedTo: (value) => value === undefined || isPath(value),
  agent: (value) => value === undefined || isAgentMark(value),
  letGo: (value) => value === undefined || has(value, isTime, 'since', 'publishedAt'),
} as const satisfies Readonly<Record<string, (value: unknown) => boolean>>

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

/** Within the range of a Date. */
function isTime(value: unknown): value is number {
  return isNumber(value) && Math.abs(value) <= latestTime
}

/** A record may make holdfast read, move or remove staging names alone. */
function isStagingName(value: unknown): boolean {
  return isText(value) && stagingPattern.test(value)
}

function isListOf(value: unknown, isOne: (one: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isOne)
}

/** Whether `value` is an object in which each of these fields passes `isSuch`. */
function has(value: unknown, isSuch: (field: unknown) => boolean, ...fields: readonly string[]): boolean {
  const object = (value ?? {}) as Readonly<Record<string, unknown>>
  return fields.every((field) => isSuch(object[field]))
}

function isObject(value: unknown): boolean {
  return (
    has(value, isText, 'kind', 'namespace', 'name', 'uid', 'resourceVersion') &&
    has(value, (paths) => isListOf(paths, isText), 'paths') &&
    has(value, (texts) => texts === undefined || isListOf(texts, isText), 'combined', 'others') &&
    has(value, (gone) => gone === undefined || typeof gone === 'boolean', 'gone')
  )
}

function isEntry(value: unknown): boolean {
  const isSize = (size: unknown): boolean => size === undefined || isNumber(size)
  return (
    has(value, isText, 'path', 'type', 'sha256') &&
    has(value, isNumber, 'mode', 'uid', 'gid') &&
    has(value, isSize, 'size')
  )
}

function isStaged(value: unknown): boolean {
  const areKnown = (entries: unknown): boolean => entries === undefined || isListOf(entries, isKnown)
  return has(value, isStagingName, 'name') && has(value, isText, 'staged', 'old') && has(value, areKnown, 'entries')
}

function isRetired(value: unknown): boolean {
  const areKnown = (entries: unknown): boolean => isListOf(entries, isKnown)
  const isNamed = has(value, isStagingName, 'name') && has(value, isText, 'inode')
  return isNamed && has(value, isTime, 'until') && has(value, areKnown, 'entries')
}

function isKnown(value: unknown): boolean {
  return has(value, isText, 'path', 'type', 'sha256')
}

function isHold(hold: unknown): boolean {
  const isEnd = (until: unknown): boolean => until === null || isTime(until)
  return has(hold, isText, 'reason') && has(hold, isTime, 'since') && has(hold, isEnd, 'until')
}

function isCause(value: unknown): boolean {
  return publicationCauses.some((cause) => cause === value)
}

export function isAgentMark(value: unknown): value is AgentMark {
  return has(value, isText, 'id') && has(value, isTime, 'publishedAt')
}

function isRemoving(value: unknown): boolean {
  return has(value, isTime, 'since') && has(value, (link) => link === undefined, 'link')
}

function isPin(pin: unknown): boolean {
  const isEnd = (until: unknown): boolean => until === 'newer' || until === 'released' || isTime(until)
  const areObjects = (objects: unknown): boolean => isListOf(objects, isObject)
  const isSaid = has(pin, isText, 'reason', 'digest') && has(pin, isTime, 'since')
  return isSaid && has(pin, isEnd, 'until') && has(pin, areObjects, 'from')
}

function isHistory(history: unknown): boolean {
  const areHooks = (hooks: unknown): boolean => hooks === undefined || isListOf(hooks, isText)
  const isCount = (value: unknown): boolean => isNumber(value) && value >= 0
  const isAge = (value: unknown): boolean => value === null || isTime(value)
  const areKept = (generations: unknown): boolean => isListOf(generations, isGeneration)
  return (
    has(history, isCount, 'keep') &&
    has(history, isAge, 'maxAge') &&
    has(history, areHooks, 'hooks') &&
    has(history, areKept, 'generations')
  )
}

function isGeneration(value: unknown): boolean {
  const isName = (name: unknown): boolean => isText(name) && generationPattern.test(name)
  const areObjects = (objects: unknown): boolean => isListOf(objects, isObject)
  const isSaid = has(value, isName, 'name') && has(value, isText, 'digest') && has(value, isCause, 'why')
  return (
    isSaid &&
    has(value, isNumber, 'sequence') &&
    has(value, isTime, 'publishedAt', 'replacedAt') &&
    has(value, (instant) => instant === undefined || isUptime(instant), 'replacedIn') &&
    has(value, areObjects, 'objects')
  )
}

function isUptime(instant: unknown): boolean {
  return has(instant, isText, 'boot') && has(instant, isTime, 'uptime')
}

function isRelocation(value: unknown): boolean {
  const isState = (state: unknown): boolean => relocationStates.some((known) => known === state)
  return (
    has(value, isPath, 'from') &&
    has(value, isTime, 'since') &&
    has(value, isState, 'state') &&
    has(value, (as) => as === 'removed', 'as')
  )
}

/** Absolute, since holdfast reads it and publishes to it. */
function isPath(value: unknown): boolean {
  return isText(value) && value.startsWith('/') && !value.includes('\0')
}
