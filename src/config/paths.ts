import { absolutePath } from '../absolute-path.js'
import { messageOf } from '../errors.js'
import type { Schema, ValueType } from './field.js'
import { quote } from '../message-text.js'
import { textType, textSchema } from './value-types.js'
import type { Value } from './value.js'

/** Longest name of a file, and longest path, in bytes. Source: Linux, include/uapi/linux/limits.h. */
const longestName = 255
const longestPath = 4095

interface ExpandedForm {
  readonly pattern: RegExp
  readonly message: string
  readonly todo?: string
}

/** Forms that a shell or another program would expand to a path; taken as they are, each would be a directory of that name. */
const expansion: readonly ExpandedForm[] = [
  { pattern: /^~(?:[/\w]|$)/, message: "starts with '~', which only a shell expands" },
  { pattern: /\$(?:\w|[({])/, message: 'contains a variable, which only a shell expands' },
  { pattern: /^[a-z]+:\/\//, message: 'is a URL' },
  { pattern: /\{\{/, message: 'is a template ({{ }})', todo: 'render the file first' },
]

/** The reader of a node's path needs to know where relative paths start. */
export interface PathContext {
  /** The directory that relative paths start at. */
  readonly base: string
}

/** A path of the node, absolute and normalised; a relative one starts at the configuration file's directory. */
export const nodePath: ValueType<string, PathContext> = textType(
  {
    schema: () => {
      // Before a '..' a name may be of any length.
      const tooLong = `^(?![\\s\\S]*\\.\\.)[\\s\\S]*[^/]{${longestName + 1}}`
      return except(textSchema, ...expansion.map(({ pattern }) => pattern.source), tooLong)
    },
  },
  (text, value, { base }) => {
    const expected = expansion.find(({ pattern }) => pattern.test(text))
    if (expected !== undefined) {
      const { message, todo = 'write the path itself' } = expected
      return value.wrong(`${quote(text)} ${message}`, todo)
    }
    try {
      return ofFitLength(absolutePath(text, base), value)
    } catch (error) {
      return value.wrong(messageOf(error))
    }
  },
)

/** A schema for texts that match none of these patterns. */
export function except(schema: Schema, ...patterns: readonly string[]): Schema {
  return { ...schema, allOf: patterns.map((pattern) => ({ not: { pattern } })) }
}

/** A path that must be absolute as it is written, since it is another program's. */
export const programPath: ValueType<string> = textType(
  { schema: () => ({ type: 'string', maxLength: longestPath, pattern: `^(?:/[^/\\u0000]{0,${longestName}})+$` }) },
  (text, value) =>
    text.startsWith('/') ? ofFitLength(text, value) : value.wrong(`${quote(text)} is not an absolute path`),
)

/** Names joined by single slashes, none of them `.` or `..`. */
const name = `[^/\\u0000]{1,${longestName}}`
const innerPattern = `(?!(?:[^/]*/)*\\.{1,2}(?:/|$))${name}(?:/${name})*`

/** A path inside the target that cannot climb out of it; its parts are joined by single slashes. */
export const innerPath: ValueType<string> = textType(
  { schema: () => ({ type: 'string', maxLength: longestPath, pattern: `^${innerPattern}$` }) },
  checkInnerPath,
)

/** Like innerPath, and `.` for the target itself, which is answered as the empty string. */
export const into: ValueType<string> = textType(
  {
    example: '.',
    schema: () => ({ type: 'string', maxLength: longestPath, pattern: `^(?:\\.|${innerPattern})$` }),
  },
  (text, value) => (text === '.' ? '' : checkInnerPath(text, value)),
)

function checkInnerPath(text: string, value: Value): string | undefined {
  const parts = text.split('/')
  if (parts.includes('..')) return value.wrong(`${quote(text)} contains '..'`, 'name a path inside the target')
  if (text.startsWith('/')) return value.wrong(`${quote(text)} is absolute`, 'name a path inside the target')
  const plain = parts.filter((part) => part !== '' && part !== '.')
  if (plain.length !== parts.length) {
    const suggestion = plain.length > 0 ? `write ${quote(plain.join('/'))}` : 'name a path inside the target'
    return value.wrong(`${quote(text)} has an empty or '.' part`, suggestion)
  }
  return ofFitLength(text, value)
}

function ofFitLength(path: string, value: Value): string | undefined {
  if (Buffer.byteLength(path) > longestPath) return value.wrong(`is longer than ${longestPath} bytes`)
  const part = path.split('/').find((name) => Buffer.byteLength(name) > longestName)
  return part === undefined ? path : value.wrong(`has a part longer than ${longestName} bytes`)
}

/** Is `path` the same as `directory`, or below it? Both are absolute and normalised. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`)
}
