import { createHash } from 'node:crypto'
import { absolutePath } from '../../absolute-path.js'

/*
 * Everything that holdfast keeps beside a target, in the target's own parent, begins with `.holdfast-ID`, ID being 16 hex
 * digits of SHA-256 over the target's basename. Kubelet and most programs that read whole directories leave names with
 * a leading dot alone.
 */

const randomPattern = /^[0-9a-f]{16}$/

/** No name that holdfast itself stages or records under ends so. */
const quarantineSuffix = '.foreign'

/** Every file that holdfast keeps beside a target; the group captures the target's key. */
export const ownPattern = /^\.holdfast-([0-9a-f]{16})[-.]/

/** A record of any target. */
export const recordPattern = /^\.holdfast-[0-9a-f]{16}\.[1-9][0-9]{0,14}$/

/** What any target stages, and the old content that stays there until its removal. */
export const stagingPattern = /^\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}$/

/** An earlier content of any target: see history.ts. */
export const generationPattern = /^\.holdfast-[0-9a-f]{16}\.(?:0|[1-9][0-9]{0,14})-[0-9a-f]{16}$/

export interface TargetNames {
  /** flock, 0600, never unlinked, the same for every caller. */
  readonly lock: string
  readonly staging: (random: string) => string
  /** The random part of a staging name of this target; undefined for every other name. */
  readonly stagingOf: (name: string) => string | undefined
  /** The place of another program's files that stood under the staging name with this random part: no cleanup touches it. */
  readonly quarantine: (random: string) => string
  /** The random part of such a name of this target; undefined for every other name. */
  readonly quarantineOf: (name: string) => string | undefined
  readonly record: (sequence: number) => string
  /** The sequence of a record of this target; undefined for every other name. */
  readonly sequenceOf: (name: string) => number | undefined
  /** What keeps the content that was published with the record of this sequence. */
  readonly generation: (sequence: number, random: string) => string
  readonly isGeneration: (name: string) => boolean
}

/**
 * `family`: the name that gives the lock and staging names, if it is not the target's own. For revisions of a static pod: no later run
 * names the revision of a killed installation again, so only a name that all revisions share leads to its stage.
 */
export function namesFor(basename: string, family?: string): TargetNames {
  const names = namesOf(basename)
  if (family === undefined) return names
  const { record, sequenceOf, generation, isGeneration } = names
  return { ...namesOf(family), record, sequenceOf, generation, isGeneration }
}

function namesOf(basename: string): TargetNames {
  const id = createHash('sha256').update(basename).digest('hex').slice(0, 16)
  const prefix = `.holdfast-${id}`
  /** What stands behind the target's own digits and this mark; empty where the name begins otherwise. */
  const behind = (mark: string, name: string): string =>
    name.startsWith(prefix + mark) ? name.slice(prefix.length + 1) : ''
  const stagingOf = (name: string): string | undefined => randomPattern.exec(behind('-', name))?.[0]
  return {
    lock: `${prefix}.lock`,
    staging: (random) => `${prefix}-${random}`,
    stagingOf,
    quarantine: (random) => `${prefix}-${random}${quarantineSuffix}`,
    quarantineOf: (name) =>
      name.endsWith(quarantineSuffix) ? stagingOf(name.slice(0, -quarantineSuffix.length)) : undefined,
    record: (sequence) => `${prefix}.${sequence}`,
    sequenceOf(name) {
      const text = behind('.', name)
      return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : undefined
    },
    generation: (sequence, random) => `${prefix}.${sequence}-${random}`,
    isGeneration: (name) => name.startsWith(`${prefix}.`) && generationPattern.test(name),
  }
}

/** NAME_MAX of every file system that holdfast runs on. */
export const maximumName = 255

/** A path as system calls take it: a string, without NUL. */
export function checkPath(path: string): string {
  if (typeof path !== 'string') throw new TypeError(`a path must be a string, not ${describeArgument(path)}`)
  if (path === '') throw new TypeError('the path is empty')
  if (path.includes('\0')) throw new TypeError('the path holds a NUL byte')
  return path
}

function describeArgument(value: unknown): string {
  if (value instanceof URL) return 'a URL: use fileURLToPath of node:url'
  return value === null ? 'null' : typeof value
}

/** An absolute, normal path that is not the root. Relative ones are meant from the working directory. */
export function checkTarget(target: string): string {
  checkPath(target)
  const last = target.replace(/\/+$/, '').split('/').pop() ?? ''
  if (last === '.' || last === '..') {
    throw new TypeError(`the target ${JSON.stringify(target)} must end in a name, not in ${JSON.stringify(last)}`)
  }
  const absolute = absolutePath(target)
  if (absolute === '/') throw new TypeError('the root directory cannot be replaced')
  if (Buffer.byteLength(last) > maximumName) throw new TypeError(`the target name is longer than ${maximumName} bytes`)
  return absolute
}

const ownName = /^\.holdfast-[0-9a-f]{16}(?:[-.]|$)/

/** A name of this program's own form is a lock, a record or staging of another target: the next publication there would remove it. */
export function checkPublishedTarget(target: string): string {
  const path = checkTarget(target)
  if (!ownName.test(path.slice(path.lastIndexOf('/') + 1))) return path
  throw new TypeError(
    `the target ${JSON.stringify(target)} has a name that holdfast reserves for its own files: choose another`,
  )
}

/** Whether UTF-8 can hold this text; bytes of a name that are none come as halves of surrogate pairs (posix/calls.ts). */
export function isUnicode(text: string): boolean {
  return !/\p{Surrogate}/u.test(text)
}

/** Order of the UTF-8 bytes, which is not the order of JavaScript's code units. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'))
}
