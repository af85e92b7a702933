/*
 * What callers without a type checker may get wrong: a misspelt option would be the default, a Map would be a directory without files,
 * and 755 is not the mode that chmod(1) calls so.
 */
import type { CallOptions, DirectoryOptions, FileOptions } from './public-options.js'

type FieldCheck = (place: string, value: unknown) => void
type Checks = Readonly<Record<string, FieldCheck>>

const callFields = {
  lockTimeout: refuseUnless(
    (value) => typeof value === 'number' && value >= 0,
    'must be a number of milliseconds, 0 or more',
  ),
  signal: refuseUnless((value) => value instanceof AbortSignal, 'must be an AbortSignal'),
  requireProven: refuseUnless((value) => typeof value === 'boolean', 'must be true or false'),
  log: refuseUnless(isLog, 'must have the functions debug, info, warn and error'),
} satisfies Record<keyof CallOptions, FieldCheck>

export const callChecks: Checks = callFields

const attributes = oneOf('set', 'keep')

const allowEmpty = refuseUnless((value) => typeof value === 'boolean', 'must be true or false')

const fileFields = {
  allowEmpty,
  attributes,
  parents: refuseUnless((value) => typeof value === 'boolean', 'must be true or false'),
  mode: refuseDecimal,
  owner: checkOwner,
  ...callFields,
} satisfies Record<keyof FileOptions, FieldCheck>

export const fileChecks: Checks = fileFields

const directoryFields = {
  files: checkFiles,
  mode: refuseDecimal,
  fileMode: refuseDecimal,
  owner: checkOwner,
  publish: oneOf('exchange', 'symlink'),
  foreign: oneOf('always', 'same-names'),
  attributes,
  allowEmpty,
  ...callFields,
} satisfies Record<keyof DirectoryOptions, FieldCheck>

export const directoryChecks: Checks = directoryFields

/** One of replaceDirectories(): what ends the batch belongs to the batch. */
export const requestChecks: Checks = {
  target: () => {},
  ...directoryFields,
  signal: (place) => {
    throw new TypeError(`${place} belongs to the options of replaceDirectories, since it stops the whole batch`)
  },
}

const anything: FieldCheck = () => {}
const ownerChecks: Checks = { uid: anything, gid: anything }
const entryChecks: Checks = { content: checkContent, mode: refuseDecimal }
const pathChecks: Checks = {
  path: refuseUnless((value) => typeof value === 'string', 'must be a string'),
  follow: refuseUnless((value) => typeof value === 'boolean', 'must be true or false'),
}

/** The fields that are set, and only those that are known. Throws TypeError, which names the first unknown one. */
export function checkFields<T extends object>(place: string, value: T, known: Checks): T {
  if (!isPlainObject(value)) throw new TypeError(`${place} must be an object`)
  const unknown = Object.keys(value).find((field) => !Object.hasOwn(known, field))
  if (unknown !== undefined) {
    throw new TypeError(`${place}.${unknown} is not a known option; known are ${Object.keys(known).join(', ')}`)
  }
  for (const [field, given] of Object.entries(value)) {
    if (given === undefined) continue
    if (given === null && field !== 'files' && field !== 'owner') {
      throw new TypeError(`${place}.${field} must not be null`)
    }
    known[field]?.(`${place}.${field}`, given)
  }
  // An option that is undefined is an option that is not given.
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T
}

type Files = DirectoryOptions['files']

/** Copies of the bytes: a change by the caller meanwhile would land under another content's digest. */
export function ownBytes<T>(content: T): T | Uint8Array {
  return content instanceof Uint8Array ? new Uint8Array(content) : content
}

export function ownFiles(files: Files): Files {
  const own = (value: Files[string]): Files[string] =>
    isPlainObject(value) && 'content' in value ? { ...value, content: ownBytes(value.content) } : ownBytes(value)
  return Object.fromEntries(Object.entries(files).map(([path, value]) => [path, own(value)]))
}

function refuseUnless(isRight: (value: unknown) => boolean, message: string): FieldCheck {
  return (place, value) => {
    if (!isRight(value)) throw new TypeError(`${place} ${message}`)
  }
}

function oneOf(...words: readonly string[]): FieldCheck {
  return refuseUnless(
    (value) => words.includes(String(value)),
    `must be one of ${words.map((word) => JSON.stringify(word)).join(', ')}`,
  )
}

function isLog(value: unknown): boolean {
  const log = value as Record<string, unknown>
  return ['debug', 'info', 'warn', 'error'].every((level) => typeof log[level] === 'function')
}

function checkOwner(place: string, owner: unknown): void {
  if (!isPlainObject(owner)) throw new TypeError(`${place} must be { uid, gid }, two numbers`)
  checkFields(place, owner, ownerChecks)
}

/** 755 is 0o1363, 644 is 0o1204: modes that nobody means, of digits that are a mode that many mean. */
function refuseDecimal(place: string, mode: unknown): void {
  const digits = String(mode)
  if (typeof mode !== 'number' || !/^[0-7]{3,4}$/.test(digits)) return
  const meant = Number.parseInt(digits, 8)
  if (isUsual(mode) || !isUsual(meant)) return
  throw new RangeError(`${place} is the decimal number ${digits}, which is 0o${mode.toString(8)}: write 0o${digits}`)
}

/** Whether each class of users may do no more than the one before it, and who may write may read. */
function isUsual(mode: number): boolean {
  const [user, group, other] = [(mode >> 6) & 7, (mode >> 3) & 7, mode & 7]
  const writesBlindly = [user, group, other].some((bits) => (bits & 6) === 2)
  return user >= 4 && (group & ~user) === 0 && (other & ~group) === 0 && !writesBlindly
}

function checkFiles(place: string, files: unknown): void {
  if (!isPlainObject(files)) throw new TypeError(`${place} must be a plain object: relative path to content`)
  for (const [path, value] of Object.entries(files)) {
    const at = `${place}[${JSON.stringify(path)}]`
    if (isPlainObject(value) && !('path' in value) && !isStream(value)) checkFields(at, value, entryChecks)
    else checkContent(at, value)
  }
}

function checkContent(place: string, value: unknown): void {
  if (typeof value === 'string' || value instanceof Uint8Array || isStream(value)) return
  if (isPlainObject(value)) checkFields(place, value, pathChecks)
  else throw new TypeError(`${place} must be a string, a Uint8Array, { path }, a stream, or { content, mode }`)
}

function isStream(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
