import { absolutePath } from '../../absolute-path.js'

/** NAME_MAX of every file system that holdfast runs on. */
export const maximumName = 255

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

/** Whether UTF-8 can hold this text; bytes of a name that are none come as halves of surrogate pairs (posix/calls.ts). */
export function isUnicode(text: string): boolean {
  return !/\p{Surrogate}/u.test(text)
}

/** Order of the UTF-8 bytes, which is not the order of JavaScript's code units. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'))
}
