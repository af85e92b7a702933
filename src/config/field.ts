/**
 * Tables of fields: one entry says how to read a field, what a JSON Schema tells of it, and what users read about it. All reading goes by
 * such a table, so that validation and schema cannot differ in what fields there are.
 */
import type { TreeNode } from '../yaml/tree.js'
import { Problems } from './problem.js'
import { Value } from './value.js'

type Json = string | number | boolean | readonly Json[] | { readonly [name: string]: Json }

/** A JSON Schema (draft 7), or a part of one. */
export interface Schema {
  readonly [keyword: string]: Json
}

/**
 * The type of a value: `read` reports each fault of the value and answers undefined, `schema` refuses as much of it as a schema can
 * express, and never what `read` takes.
 */
export interface ValueType<Read, Context = unknown> {
  readonly read: (value: Value, context: Context) => Read | undefined
  readonly schema: () => Schema
}

/** A field of a mapping. */
export interface Field<Read, Context = unknown> {
  readonly type: ValueType<Read, Context>
  /** One line for users, without a full stop. */
  readonly description: string
  /** As users would write it; it stands in for a missing field, and for a value that the type refuses. */
  readonly default?: string | number | boolean | readonly string[]
  /** The field is mandatory: a text to write, which may depend on the fields before it. */
  readonly required?: string | ((before: Readonly<Record<string, unknown>>) => string)
  /** Advice for a field without a value. */
  readonly withoutValue?: string
}

export type Fields<Context> = Readonly<Record<string, Field<unknown, Context>>>

type ResultOf<Each extends Field<unknown, never>> = Each extends { readonly default: Json }
  ? Exclude<ReturnType<Each['type']['read']>, undefined>
  : ReturnType<Each['type']['read']>

/** The values of a mapping's fields, with the nodes that gave them. */
export interface Given<Table extends Fields<never>> {
  readonly read: { readonly [Name in keyof Table]: ResultOf<Table[Name]> }
  /** Those that are given with a value. */
  readonly at: { readonly [Name in keyof Table]?: Value }
  /** Those that are given and cannot be read. */
  readonly wrong: ReadonlySet<keyof Table>
  /** Also without a value. */
  readonly wasGiven: (name: keyof Table & string) => boolean
}

/** Reads each field of a table, in its order. */
export function readFields<Context, Table extends Fields<Context>>(
  mapping: Value,
  table: Table,
  context: Context,
): Given<Table> {
  const read: Record<string, unknown> = {}
  const at: Record<string, Value> = {}
  const wrong = new Set<string>()
  for (const [name, field] of Object.entries(table)) {
    const { required } = field
    const example = typeof required === 'function' ? required(read) : required
    const value = example === undefined ? mapping.field(name, field.withoutValue) : mapping.required(name, example)
    const found = value && field.type.read(value, context)
    if (value !== undefined) {
      at[name] = value
      if (found === undefined) wrong.add(name)
    }
    read[name] = found ?? defaultOf(name, field, context)
  }
  return { read, at, wrong, wasGiven: (name: string) => mapping.has(name) } as unknown as Given<Table>
}

/** Reads the default as a user would write it, so that it means the same. */
function defaultOf<Context>(name: string, field: Field<unknown, Context>, context: Context): unknown {
  if (field.default === undefined) return undefined
  const problems = new Problems(`the default of ${name}`)
  const read = field.type.read(new Value(nodeOf(field.default), '', problems), context)
  problems.throwIfAny()
  return read
}

function nodeOf(written: string | number | boolean | readonly string[]): TreeNode {
  const nowhere = { line: 0, column: 0, size: 1 }
  if (typeof written === 'object') return { kind: 'list', items: written.map(nodeOf), ...nowhere }
  return { kind: 'scalar', value: written, source: String(written), ...nowhere }
}

/** Reports fields that are right each by itself, but not together, or only where other fields have other values. */
interface TableRule<Table extends Fields<never>> {
  readonly check: (given: Given<Table>) => void
  /** Holds for the mapping. */
  readonly schema: Schema
}

/** Fields that must not all be so. */
export function neverBoth(properties: Readonly<Record<string, Schema>>): Schema {
  return { not: { properties, required: Object.keys(properties) } }
}

/** A field that is only given where these are so. */
export function onlyWhere(name: string, properties: Readonly<Record<string, Schema>>): Schema {
  return { dependencies: { [name]: { properties, required: Object.keys(properties) } } }
}

interface Shape<Table extends Fields<never>, Choices extends Fields<never>> {
  readonly fields: Table
  /** Fields of which exactly one must be given. */
  readonly choices?: Choices
  /** All of them, as a message about an unknown field lists them; default: the choices, and then the fields. */
  readonly known?: readonly string[]
  /** The advice for each field that people expect here in vain. */
  readonly misplaced?: Readonly<Record<string, string>>
  readonly rules?: readonly TableRule<Table>[]
}

/** The choice that was made, where it can be read. */
export type Chosen<Choices extends Fields<never>> = {
  [Name in keyof Choices]: {
    readonly type: Name
    readonly read: Exclude<ReturnType<Choices[Name]['type']['read']>, undefined>
  }
}[keyof Choices]

/** A mapping of these fields: the type reads each of them, and `make` makes the value of them. */
export function mappingOf<Context, Table extends Fields<Context>, Read, Choices extends Fields<Context> = never>(
  {
    fields,
    choices,
    known = [...Object.keys(choices ?? {}), ...Object.keys(fields)],
    misplaced,
    rules = [],
  }: Shape<Table, Choices>,
  make: (given: Given<Table>, value: Value, context: Context, chosen: Chosen<Choices> | undefined) => Read | undefined,
): ValueType<Read, Context> {
  return {
    read: (value, context) => {
      if (!value.isMappingOf(known, misplaced)) return undefined
      const chosen = choices && readChoice<Context, Choices>(value, choices, context)
      const given = readFields(value, fields, context)
      for (const { check } of rules) check(given)
      return make(given, value, context, chosen)
    },
    schema: () => mappingSchema(fields, choices, rules),
  }
}

function readChoice<Context, Choices extends Fields<Context>>(
  mapping: Value,
  choices: Choices,
  context: Context,
): Chosen<Choices> | undefined {
  const type = mapping.exactlyOne(Object.keys(choices))
  const choice = type === undefined ? undefined : choices[type]
  const value = type === undefined ? undefined : mapping.field(type, choice?.withoutValue)
  const read = value && choice?.type.read(value, context)
  return read === undefined ? undefined : ({ type, read } as Chosen<Choices>)
}

export function mappingSchema(
  fields: Fields<never>,
  choices: Fields<never> = {},
  rules: readonly { readonly schema: Schema }[] = [],
): Schema {
  const all = [...Object.entries(choices), ...Object.entries(fields)]
  const required = Object.keys(fields).filter((name) => fields[name]?.required !== undefined)
  const names = Object.keys(choices)
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(all.map(([name, field]) => [name, fieldSchema(field)])),
    ...(required.length > 0 && { required }),
    ...(names.length > 0 && { oneOf: names.map((name) => ({ required: [name] })) }),
    ...(rules.length > 0 && { allOf: rules.map(({ schema }) => schema) }),
  }
}

function fieldSchema({ type, description, default: written }: Field<unknown, never>): Schema {
  const schema = type.schema()
  const form = typeof schema['description'] === 'string' ? `; ${schema['description']}` : ''
  return { ...schema, description: description + form, ...(written !== undefined && { default: written }) }
}
