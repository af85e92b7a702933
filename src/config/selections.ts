/** Reads `secrets: { selector: app=web, into: '{name}' }`, and `configMaps` alike. */
import { type Fields, mappingOf, mappingSchema, readFields, type Schema, type ValueType } from './field.js'
import { dataKey, type NamespaceDefault, namespaceName } from './object-names.js'
import { fileMode } from './ownership.js'
import type { Item, SelectedContent } from './types.js'
import type { Value } from './value.js'
import { parseSelector, SelectorError } from '../label-selector.js'
import { type ObjectKind, selectionReference } from '../objects/types.js'
import { quote } from '../quote.js'
import type { ReadContent } from './content-conflicts.js'
import { except, innerPath, into } from './paths.js'
import { placeholder } from './references.js'
import { boolean, listOf, textSchema } from './value-types.js'

/** One of `items`; `at`: where its path is written. */
interface ReadItem {
  readonly item: Item
  readonly at: Value
}

/** `path`: the type of its path. */
export function itemWith(path: ValueType<string>): ValueType<ReadItem> {
  const fields = {
    key: { type: dataKey, description: 'a key of the object', required: 'tls.crt' },
    path: {
      type: path,
      description: 'the file that the key becomes, below `into`',
      required: ({ key }) => (typeof key === 'string' ? key : 'tls.crt'),
    },
    mode: { type: fileMode, description: "of this file; default: the directory's `fileMode`" },
  } satisfies Fields<unknown>
  return mappingOf({ fields }, ({ read: { key, path, mode }, at: { path: at } }) =>
    key === undefined || path === undefined || at === undefined ? undefined : { item: { key, path, mode }, at },
  )
}

const selector: ValueType<string> = { read: readSelector, schema: () => textSchema }

const fields = {
  selector: {
    type: selector,
    description:
      'as in kubectl get -l: app=web, app!=web, app in (web,db), app notin (web), app, !app, joined by commas',
    required: 'app=web',
  },
  namespace: { type: namespaceName, description: 'whose objects; default: `source.namespace`' },
  into: {
    type: pattern(into),
    description: `where the keys of each object go; ${placeholder} is the object's name`,
    default: placeholder,
  },
  optional: {
    type: boolean,
    description: 'publish also while nothing matches, or keys of `items` are absent',
    default: false,
  },
  items: {
    type: listOf(itemWith(pattern(innerPath))),
    description: `which keys of each object become which files; with ${placeholder} in each path, \`into\` needs none; default: every key`,
  },
} satisfies Fields<unknown>

export const selectionFields = Object.keys(fields)

const misplaced = {
  matchLabels: 'write selector: app=web',
  matchExpressions: 'write selector: app in (web,db)',
  label: 'write selector: app=web',
  name: 'an object with a known name is secret: NAME, or configMap: NAME',
}

export interface SelectionContext {
  /** Of the content as a whole. */
  readonly place: string
  readonly defaults: NamespaceDefault
}

/** The objects of a kind that have certain labels. */
export function selection(kind: ObjectKind): ValueType<ReadContent, SelectionContext> {
  return {
    read: (value, context) => readSelection(value, kind, context),
    schema: () => mappingSchema(fields, {}, [{ schema: apartSchema() }]),
  }
}

function readSelection(value: Value, kind: ObjectKind, { place, defaults }: SelectionContext): ReadContent | undefined {
  if (!defaults.selectable) {
    const rights = 'set source.kubernetes.watch: namespaces, which takes get, list and watch of all of them'
    value.wrong('a selector needs the labels of all objects of a namespace', rights)
  }
  const mapping = value.mapping(selectionFields, misplaced)
  if (mapping === undefined) return undefined
  const { read, at, wrong } = readFields(mapping, fields, undefined)
  const { selector, optional, items } = read
  const namespace = at.namespace === undefined ? defaults.namespace : read.namespace
  if (at.namespace === undefined && namespace === undefined) defaults.unqualified.push({ value, name: undefined })
  if (selector === undefined || namespace === undefined || wrong.has('into')) return undefined
  const apart = read.into.includes(placeholder) || items?.every(({ item }) => item.path.includes(placeholder)) === true
  if (!apart) {
    const todo = `write into: '${placeholder}', or ${placeholder} in the path of each of the items`
    at.into?.wrong(
      `${quote(read.into || '.')} is the same for all objects, and two of them may have the same key`,
      todo,
    )
  }
  const content: SelectedContent = {
    type: 'selector',
    place,
    reference: selectionReference(kind, namespace, selector),
    into: read.into,
    optional,
    items: items?.map(({ item }) => item),
  }
  return { content, at: at.into ?? value, itemPaths: items?.map(({ at }) => at) ?? [] }
}

/** Each object gets separate files. */
function apartSchema(): Schema {
  const named = { pattern: placeholder.replace(/[{}]/g, '\\$&') }
  const everyPath = { type: 'array', items: { properties: { path: named } } }
  const byItems = { required: ['items'], properties: { items: everyPath } }
  return { anyOf: [{ not: { required: ['into'] } }, { properties: { into: named } }, byItems] }
}

function readSelector(value: Value): string | undefined {
  const text = value.text('app=web')?.trim()
  if (text === undefined) return undefined
  try {
    parseSelector(text)
    return text
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error
    return value.wrong(error.message, error.suggestion)
  }
}

/** A path that may hold the placeholder. */
function pattern(path: ValueType<string>): ValueType<string> {
  return {
    read: (value) => {
      // Without quotes, {name} is a mapping in YAML.
      if (value.node.kind === 'mapping') {
        return value.wrong('must be a string, not a mapping', `quote it: '${placeholder}'`)
      }
      const read = path.read(value, undefined)
      const unknown = read?.match(/\{\w+\}/g)?.find((found) => found !== placeholder)
      if (unknown !== undefined) value.wrong(`${quote(unknown)} is not known`, `holdfast replaces ${placeholder} only`)
      return read
    },
    schema: () => except(path.schema(), `\\{(?!${placeholder.slice(1, -1)}\\})\\w+\\}`),
  }
}
