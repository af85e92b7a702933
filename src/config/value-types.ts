/** Types of values that no section of the configuration has to itself. */
import { durationPart, parseDuration } from './duration.js'
import type { Schema, ValueType } from './field.js'
import { quote } from '../message-text.js'
import { nearestWord, type Value } from './value.js'

/** A string that is not empty and holds no NUL. */
export const textSchema = { type: 'string', pattern: '^[^\\u0000]+$' } as const satisfies Schema

export const text: ValueType<string> = { read: (value) => value.text(), schema: () => textSchema }

interface TextForm<Read> {
  /** A text to write, where only a certain form will do. */
  readonly example?: string
  readonly schema: () => Schema
  /** Reports a number, as which YAML takes a text without quotes. */
  readonly ofNumber?: (number: number, source: string, value: Value) => Read | undefined
}

/** What is written as text. */
export function textType<Read, Context = unknown>(
  { example, schema, ofNumber }: TextForm<Read>,
  read: (text: string, value: Value, context: Context) => Read | undefined,
): ValueType<Read, Context> {
  return {
    read: (value, context) => {
      const { node } = value
      if (ofNumber && node.kind === 'scalar' && typeof node.value === 'number')
        return ofNumber(node.value, node.source, value)
      const text = value.text(example)
      return text === undefined ? undefined : read(text, value, context)
    },
    schema,
  }
}

/** A name, which may be all digits, and then only needs quotes; `example`: a text to write in place of an empty one. */
export function nameLike(
  example: string,
  schema: Schema = textSchema,
  read: (text: string, value: Value) => string | undefined = (text) => text,
): ValueType<string> {
  return {
    read: (value) => {
      const { node } = value
      const isEmpty = node.kind === 'scalar' && node.value === ''
      const text = value.text(isEmpty ? example : undefined)
      return text === undefined ? undefined : read(text, value)
    },
    schema: () => schema,
  }
}

/** True, false, or one of a few words. */
export function booleanOr<const Word extends string>(words: readonly Word[]): ValueType<boolean | Word> {
  const all = ['true', 'false', ...words]
  const known = `${all.slice(0, -1).join(', ')} or ${all.at(-1) ?? ''}`
  return {
    read: (value) => {
      const written = value.node.kind === 'scalar' ? value.node.value : null
      if (typeof written === 'boolean') return written
      const word = words.find((word) => word === written)
      if (word !== undefined) return word
      // YAML 1.1 had more words for it, and templates put quotes around everything.
      const said = String(written).toLowerCase()
      const meant = ['true', 'yes', 'on'].includes(said) || (['false', 'no', 'off'].includes(said) ? false : undefined)
      const suggestion = meant === undefined ? undefined : `write ${meant}, without quotes`
      return value.wrong(`must be ${known}, not ${value.kind}`, suggestion)
    },
    schema: () => (words.length === 0 ? { type: 'boolean' } : { enum: [true, false, ...words] }),
  }
}

export const boolean: ValueType<boolean> = booleanOr([])

export function integer(minimum: number, maximum: number): ValueType<number> {
  return {
    read: (value) => {
      const { node } = value
      const written = node.kind === 'scalar' ? node.value : null
      if (typeof written === 'number' && Number.isSafeInteger(written)) {
        if (written >= minimum && written <= maximum) return written
        return value.wrong(`${written} is out of range`, `write ${minimum} to ${maximum}`)
      }
      const isNumber = node.kind === 'scalar' && typeof written === 'number'
      const isQuoted = !isNumber && /^-?\d{1,15}$/.test(String(written))
      return value.wrong(
        `must be a whole number, not ${isNumber ? node.source : value.kind}`,
        isQuoted ? `write ${written}, without quotes` : undefined,
      )
    },
    schema: () => ({ type: 'integer', minimum, maximum }),
  }
}

/** Numbers from 0 to the limit with as many digits as it has, or fewer, as a pattern. */
export function numberUpTo(limit: number): string {
  const digits = String(limit)
  const smaller = Array.from(digits, (digit, index) => {
    const rest = digits.length - index - 1
    return digit === '0' ? [] : [`${digits.slice(0, index)}[0-${Number(digit) - 1}][0-9]{${rest}}`]
  })
  return `(?:[0-9]{1,${digits.length - 1}}|${[...smaller.flat(), digits].join('|')})`
}

/** One of a few words. */
export function oneOf<const Word extends string>(words: readonly Word[]): ValueType<Word> {
  const known = words.join(', ')
  return {
    read: (value) => {
      const { node } = value
      if (node.kind !== 'scalar' || typeof node.value !== 'string')
        return value.wrong(`must be one of ${known}, not ${value.kind}`)
      const text = value.text(words[0])
      const found = words.find((word) => word === text)
      if (text === undefined || found !== undefined) return found
      const meant = nearestWord(text, words)
      return value.wrong(`${quote(text)} is not one of ${known}`, meant && `did you mean "${meant}"?`)
    },
    schema: () => ({ enum: words }),
  }
}

/** The one word that a field of this name may have. */
export function fixed(name: string, expected: string): ValueType<string> {
  return textType({ example: expected, schema: () => ({ const: expected }) }, (text, value) =>
    text === expected ? text : value.wrong(`${quote(text)} is not known`, `write ${name}: ${expected}`),
  )
}

/** Those items of a list that can be read. It must have at least one; `mayBeEmpty`: an empty list says in so many words that there is none. */
export function listOf<Read, Context>(
  item: ValueType<Read, Context>,
  { mayBeEmpty = false } = {},
): ValueType<readonly Read[], Context> {
  return {
    read: (value, context) => {
      if (mayBeEmpty && value.node.kind === 'list' && value.node.items.length === 0) return []
      const read = value.list().map((each) => item.read(each, context))
      return read.filter((each) => each !== undefined)
    },
    schema: () => ({ type: 'array', items: item.schema(), ...(!mayBeEmpty && { minItems: 1 }) }),
  }
}

/** Reads a value by a type, and makes another of it. */
export function made<Read, Made, Context>(
  type: ValueType<Read, Context>,
  make: (read: Read) => Made,
): ValueType<Made, Context> {
  return {
    read: (value, context) => {
      const read = type.read(value, context)
      return read === undefined ? undefined : make(read)
    },
    schema: type.schema,
  }
}

/** Defers the reading of a value until the caller knows its context. */
export function later<Read, Context>(
  type: ValueType<Read, Context>,
): ValueType<(context: Context) => Read | undefined> {
  return { read: (value) => (context) => type.read(value, context), schema: type.schema }
}

/** The least and the most that a duration may be, as they are written. */
export interface DurationLimits {
  readonly least: string
  readonly most: string
}

const hookLimits: DurationLimits = { least: '1ms', most: '1h' }

/** Milliseconds, an integer, within the limits. */
export function duration(limits: DurationLimits = hookLimits): ValueType<number> {
  const { least, most } = limits
  const range = `write ${least} to ${most}`
  return textType(
    {
      example: '10s',
      schema: () => ({
        type: 'string',
        pattern: `^(?:0|(?:${durationPart})+)$`,
        description: `a duration such as 1m30s, ${least} to ${most}`,
      }),
      ofNumber: (_, source, value) => {
        const seconds = `${source}s`
        const isMeant = isBetween(parseDuration(seconds), limits)
        return value.wrong(`${source} has no unit`, isMeant ? `write ${quote(seconds)} for seconds` : range)
      },
    },
    (text, value) => {
      const duration = parseDuration(text)
      if (duration === undefined)
        return value.wrong(`${quote(text)} is not a duration`, 'write as in "10s", "1m30s", "500ms"')
      return isBetween(duration, limits) ? Math.round(duration) : value.wrong(`${quote(text)} is out of range`, range)
    },
  )
}

function isBetween(duration: number | undefined, { least, most }: DurationLimits): boolean {
  return (
    duration !== undefined && duration >= (parseDuration(least) ?? 0) && duration <= (parseDuration(most) ?? Infinity)
  )
}
