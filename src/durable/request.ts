import { absolutePath } from '../absolute-path.js'
import { directoriesAbove } from '../relative-path.js'
import { isReadLater, type PlannedContent, plannedContent } from './content.js'
import type { FileReadingOptions } from './content-source.js'
import type { Owner, PublicationOptions, ReplaceDirectoryOptions } from './types.js'

/** One file of a publication. */
interface PlannedFile {
  readonly path: string
  readonly content: PlannedContent
  readonly mode: number
}

/** What a directory is to hold: checked, complete, in byte order of the paths. */
export interface DirectoryPlan {
  readonly target: string
  readonly files: readonly PlannedFile[]
  /** Subdirectories, parents before children. */
  readonly directories: readonly string[]
  readonly mode: number
  readonly owner: Owner | undefined
}

const maximumMode = 0o7777
/** NAME_MAX of every file system that holdfast runs on. */
const maximumName = 255

/** Checks the request and completes it. Throws TypeError or RangeError, which name the place; nothing was touched. */
export function planFor(
  target: string,
  options: ReplaceDirectoryOptions & Pick<PublicationOptions, 'emptyDirectories' | 'contentStays'> & FileReadingOptions,
): DirectoryPlan {
  const mode = checkMode('mode', options.mode ?? 0o755)
  const fileMode = checkMode('fileMode', options.fileMode ?? 0o600)
  if (typeof options.files !== 'object') throw new TypeError('files must be an object: relative path to content')
  const files: PlannedFile[] = []
  for (const [path, value] of Object.entries(options.files)) {
    checkRelativePath(path)
    const isEntry = typeof value === 'object' && !(value instanceof Uint8Array) && !isReadLater(value)
    const content = isEntry ? value.content : value
    const own = isEntry ? value.mode : undefined
    files.push({
      path,
      content: plannedContent(target, path, content, options),
      mode: own === undefined ? fileMode : checkMode(`files[${JSON.stringify(path)}].mode`, own),
    })
  }
  const empty = (options.emptyDirectories ?? []).map((path) => {
    checkRelativePath(path)
    return `${path}/`
  })
  const directories = new Set([...files.map(({ path }) => path), ...empty].flatMap(directoriesAbove))
  const clash = files.find((file) => directories.has(file.path))
  if (clash) throw new TypeError(`files: ${JSON.stringify(clash.path)} is both a file and a directory`)
  return {
    target: checkPublishedTarget(target),
    files: files.sort((a, b) => compareBytes(a.path, b.path)),
    directories: [...directories].sort(compareBytes),
    mode,
    owner: options.owner === undefined ? undefined : checkOwner(options.owner),
  }
}

/** A path as system calls take it: a string, without NUL. */
export function checkPath(path: string): string {
  if (typeof path !== 'string') throw new TypeError(`a path must be a string, not ${kindOf(path)}`)
  if (path === '') throw new TypeError('the path is empty')
  if (path.includes('\0')) throw new TypeError('the path holds a NUL byte')
  return path
}

function kindOf(value: unknown): string {
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

export function checkMode(name: string, mode: number): number {
  if (!Number.isInteger(mode) || mode < 0 || mode > maximumMode) {
    throw new RangeError(
      `${name} must be an integer from 0 to 0o7777, not ${typeof mode === 'number' ? mode : JSON.stringify(mode)}`,
    )
  }
  return mode
}

export function checkOwner(owner: Owner): Owner {
  for (const part of ['uid', 'gid'] as const) {
    const value = owner[part]
    // (uid_t)-1 means "leave it" to chown(2).
    if (!Number.isInteger(value) || value < 0 || value >= 0xffffffff) {
      throw new RangeError(`owner.${part} must be an integer from 0 to 4294967294, not ${String(value)}`)
    }
  }
  return { uid: owner.uid, gid: owner.gid }
}

function checkRelativePath(path: string): void {
  const shown = JSON.stringify(path)
  if (path === '') throw new TypeError('files: a path is empty')
  if (path.includes('\0')) throw new TypeError(`files: ${shown} holds a NUL byte`)
  if (!isUnicode(path)) {
    throw new TypeError(`files: ${shown} holds half of a surrogate pair, which is not valid text`)
  }
  if (path.startsWith('/') || path.endsWith('/')) {
    throw new TypeError(`files: ${shown} starts or ends with a slash: paths are relative to the target`)
  }
  for (const part of path.split('/')) {
    if (part === '' || part === '.' || part === '..') {
      throw new TypeError(`files: ${shown} has the part ${JSON.stringify(part)}; leave it out`)
    }
    if (Buffer.byteLength(part) > maximumName) {
      throw new TypeError(`files: ${shown} has a part longer than ${maximumName} bytes`)
    }
  }
}

/** Whether a path is text that UTF-8 can hold; bytes of a name that are none come as halves of surrogate pairs (posix/calls.ts). */
export function isUnicode(path: string): boolean {
  return Buffer.from(path, 'utf8').toString('utf8') === path
}

/** Order of the UTF-8 bytes, which is not the order of JavaScript's code units. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'))
}
