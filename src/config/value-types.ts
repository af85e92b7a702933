/** Types of values that no section of the configuration has to itself. */
import type { Schema, ValueType } from './field.js'
import { quote } from '../message-text.js'

/** A string that is not empty and holds no NUL. */
export const textSchema = { type: 'string', pattern: '^[^\\u0000]+$' } as const satisfies Schema

export const text: ValueType<string> = { read: (value) => value.text(), schema: () => textSchema }

/** A name, which may be all digits; `example`: a text to write in place of an empty one. */
export function nameLike(example: string): ValueType<string> {
  return { read: (value) => value.name(example), schema: () => textSchema }
}

export const boolean: ValueType<boolean> = { read: (value) => value.boolean(), schema: () => ({ type: 'boolean' }) }

/** True, false, or one of a few words. */
export function booleanOr<const Word extends string>(words: readonly Word[]): ValueType<boolean | Word> {
  return { read: (value) => value.booleanOr(words), schema: () => ({ enum: [true, false, ...words] }) }
}

export function integer(minimum: number, maximum: number): ValueType<number> {
  return { read: (value) => value.integer(minimum, maximum), schema: () => ({ type: 'integer', minimum, maximum }) }
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
  return { read: (value) => value.oneOf(words), schema: () => ({ enum: words }) }
}

/** The one word that a field of this name may have. */
export function fixed(name: string, expected: string): ValueType<string> {
  return {
    read: (value) => {
      const text = value.text(expected)
      if (text === undefined || text === expected) return text
      return value.wrong(`${quote(text)} is not known`, `write ${name}: ${expected}`)
    },
    schema: () => ({ const: expected }),
  }
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
