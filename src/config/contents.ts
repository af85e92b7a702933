import { mappingSchema, readFields, type Field, type Fields, type ValueType, mappingOf, type Schema } from './field.js'
import { fileMode } from './ownership.js'
import { dataKey, referenceTo, type NamespaceDefault, namespaceName } from './object-names.js'
import { innerPath, into, except } from './paths.js'
import type { CombinedContent, ObjectContent, Item, SelectedContent, Content, PublishForm } from './types.js'
import { type ObjectKind, selectionReference } from '../objects/types.js'
import { boolean, listOf, textType, textSchema } from './value-types.js'
import type { Value } from './value.js'
import { parseSelector, SelectorError } from '../label-selector.js'
import { objectName, quote } from '../message-text.js'
import { placeholder } from './references.js'

const selector: ValueType<string> = textType({ example: 'app=web', schema: () => textSchema }, (written, value) => {
  const text = written.trim()
  try {
    parseSelector(text)
    return text
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error
    return value.wrong(error.message, error.suggestion)
  }
})

/** Of `secrets: { selector: app=web, into: '{name}' }`, and `configMaps` alike. */
const selectionFields = {
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

const notSelections = {
  matchLabels: 'write selector: app=web',
  matchExpressions: 'write selector: app in (web,db)',
  label: 'write selector: app=web',
  name: 'an object with a known name is secret: NAME, or configMap: NAME',
}

/** A content has one of these fields, beside the fields that belong to its kind. A new kind starts here. */
const objects = {
  secret: { type: referenceTo('Secret'), description: 'a Secret, [NAMESPACE/]NAME' },
  configMap: { type: referenceTo('ConfigMap'), description: 'a ConfigMap, [NAMESPACE/]NAME' },
} satisfies Fields<NamespaceDefault>
const selections = {
  secrets: { type: selection('Secret'), description: 'all Secrets of a namespace whose labels match' },
  configMaps: { type: selection('ConfigMap'), description: 'all ConfigMaps of a namespace whose labels match' },
} satisfies Fields<SelectionContext>
const combined = {
  combine: {
    type: innerPath,
    description: 'one file of several keys, so that a reader never sees an old certificate with a new key',
  },
} satisfies Fields<unknown>

const optional = (description: string) =>
  ({ type: boolean, description, default: false }) satisfies Field<boolean> & { default: boolean }

const objectFields = {
  into: { type: into, description: 'the directory below the target that holds the keys', default: '.' },
  optional: optional('publish also while the object, or a key of `items`, is absent'),
  items: {
    type: listOf(itemWith(innerPath)),
    description: 'which keys become which files; default: every key, by its own name',
  },
} satisfies Fields<unknown>

const partFields = {
  key: { type: dataKey, description: 'a key of the object', required: 'tls.crt' },
} satisfies Fields<unknown>

const combinedFields = {
  from: {
    type: listOf(
      mappingOf(
        {
          fields: partFields,
          choices: objects,
          misplaced: { optional: 'set optional on the combined file as a whole' },
        },
        ({ read: { key } }, _value, _defaults: NamespaceDefault, chosen) =>
          chosen === undefined || key === undefined ? undefined : { reference: chosen.read, key },
      ),
    ),
    description: 'the keys, in the order in which the file holds them',
    required: '[{ secret: NAME, key: KEY }]',
  },
  mode: { type: fileMode, description: "of the file; default: the directory's `fileMode`" },
  optional: optional('leave the file out while a part of it is absent'),
} satisfies Fields<NamespaceDefault>

const objectTypes = fieldNames(objects)
const types = [...objectTypes, ...fieldNames(selections), ...fieldNames(combined)] as const

/** An element of `contents`. */
export const content: ValueType<ReadContent, NamespaceDefault> = {
  read: readElement,
  schema: () => ({
    anyOf: [
      mappingSchema(objectFields, objects),
      mappingSchema({}, selections),
      mappingSchema(combinedFields, combined),
    ],
  }),
}

function fieldNames<Table extends object>(table: Table): readonly (keyof Table)[] {
  return Object.keys(table) as (keyof Table)[]
}

function readElement(value: Value, defaults: NamespaceDefault): ReadContent | undefined {
  const selection = fieldNames(selections).find((name) => value.has(name))
  const isCombined = value.has('combine')
  const misplaced = isCombined
    ? { items: 'it belongs to secret and configMap: here it is from', into: 'put it into combine' }
    : { from: 'it belongs to combine', mode: 'give each of the items its mode, or the directory a fileMode' }
  const own = Object.keys(isCombined ? combinedFields : objectFields)
  const isMapping =
    selection === undefined
      ? value.isMappingOf([...types, ...own], { ...misplaced, selector: 'write secrets: { selector: … }' })
      : value.isMappingOf(
          types,
          Object.fromEntries(Object.keys(selectionFields).map((name) => [name, `put it into ${selection}`])),
        )
  const type = isMapping ? value.exactlyOne(types) : undefined
  if (type === undefined) return undefined
  if (type === 'combine') return readCombined(value, defaults)
  if (type === 'secret' || type === 'configMap') return readObject(value, type, defaults)
  const selected = value.field(type)
  return selected && selections[type].type.read(selected, { place: value.place, defaults })
}

function readObject(value: Value, type: keyof typeof objects, defaults: NamespaceDefault): ReadContent | undefined {
  const named = value.field(type)
  const reference = named && objects[type].type.read(named, defaults)
  const { read, at, wrong } = readFields(value, objectFields, undefined)
  if (reference === undefined || wrong.has('into')) return undefined
  const content: ObjectContent = {
    type: 'object',
    place: value.place,
    reference,
    into: read.into,
    optional: read.optional,
    items: read.items?.map(({ item }) => item),
  }
  return { content, at: at.into ?? value, itemPaths: read.items?.map(({ at }) => at) ?? [] }
}

function readCombined(value: Value, defaults: NamespaceDefault): ReadContent | undefined {
  const { read: choice, at } = readFields(value, combined, undefined)
  const { from, mode, optional } = readFields(value, combinedFields, defaults).read
  if (choice.combine === undefined || at.combine === undefined || from === undefined) return undefined
  const content: CombinedContent = {
    type: 'combine',
    place: value.place,
    path: choice.combine,
    from,
    mode,
    optional,
  }
  return { content, at: at.combine, itemPaths: [] }
}

/** One of `items`; `at`: where its path is written. */
interface ReadItem {
  readonly item: Item
  readonly at: Value
}

/** `path`: the type of its path. */
function itemWith(path: ValueType<string>): ValueType<ReadItem> {
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

interface SelectionContext {
  /** Of the content as a whole. */
  readonly place: string
  readonly defaults: NamespaceDefault
}

/** The objects of a kind that have certain labels. */
function selection(kind: ObjectKind): ValueType<ReadContent, SelectionContext> {
  return {
    read: (value, context) => readSelection(value, kind, context),
    schema: () => mappingSchema(selectionFields, {}, [{ schema: apartSchema() }]),
  }
}

function readSelection(value: Value, kind: ObjectKind, { place, defaults }: SelectionContext): ReadContent | undefined {
  if (!defaults.selectable) {
    const rights = 'set source.kubernetes.watch: namespaces, which takes get, list and watch of all of them'
    value.wrong('a selector needs the labels of all objects of a namespace', rights)
  }
  if (!value.isMappingOf(Object.keys(selectionFields), notSelections)) return undefined
  const { read, at, wrong } = readFields(value, selectionFields, undefined)
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

/** A content with the values that its paths come from, for the checks that compare contents with each other. */
interface ReadContent {
  readonly content: Content
  /** Where `into`, or the combined file's path, is written. */
  readonly at: Value
  /** Where each item's path is written, in the order of the items. */
  readonly itemPaths: readonly Value[]
}

/**
 * Finds conflicts of contents before any object is seen: files of the same path, and a path that would be a file and a
 * directory. The keys of an object are unknown here: rendering the directory checks them again.
 */
export function reportContentConflicts(
  contents: readonly ReadContent[],
  publish: PublishForm,
  reservesDots: boolean,
): void {
  const all = new InnerPaths()
  const everyKey = new Map<string, string>()
  for (const { content, at, itemPaths } of contents) {
    // Two selectors with the same paths may well select objects with different names.
    const paths = content.type === 'selector' ? new InnerPaths() : all
    const named =
      content.type === 'combine'
        ? [{ path: content.path, at }]
        : (content.items ?? []).map((item, index) => ({
            path: content.into === '' ? item.path : `${content.into}/${item.path}`,
            at: itemPaths[index] ?? at,
          }))
    for (const file of named) paths.addFile(file.path, file.at)
    if (content.type === 'selector') {
      // These directories hold the files of every object, under any name.
      const below = content.items === undefined ? [{ path: content.into, at }] : named
      for (const one of below) all.addDirectory(aboveNames(one.path), one.at)
    }
    if (reservesDots) {
      if (content.type !== 'combine' && content.items === undefined) reportReserved(content.into, publish, at)
      for (const file of named) reportReserved(file.path, publish, file.at)
    }
    if (content.type === 'combine' || content.items !== undefined) continue
    paths.addDirectory(content.into, at)
    const identity = `${objectName(content.reference)} into ${content.into}`
    const first = everyKey.get(identity)
    if (first !== undefined) {
      at.wrong(`writes every key of ${objectName(content.reference)} a second time: ${first} does so already`)
    }
    everyKey.set(identity, first ?? content.place)
  }
}

/** The directory that holds what a selector selects, as far as it is the same for all. */
function aboveNames(path: string): string {
  const parts = path.split('/')
  const named = parts.findIndex((part) => part.includes(placeholder))
  return parts.slice(0, Math.max(0, named)).join('/')
}

/** With `publish: symlink`, `..data` and the data directories stand beside the links of the contents. */
function reportReserved(path: string, publish: PublishForm, at: Value): void {
  const [top = ''] = path.split('/')
  if (!top.startsWith('..')) return
  at.wrong(`${quote(top)} is reserved with publish: ${publish}`, "choose a name that does not start with '..'")
}

class InnerPaths {
  readonly #files = new Map<string, Value>()
  readonly #directories = new Map<string, Value>()

  addFile(path: string, at: Value): void {
    const same = this.#files.get(path)
    const inside = this.#directories.get(path)
    if (same !== undefined) at.wrong(`${quote(path)} is written twice, first by ${same.place}`)
    else if (inside !== undefined) at.wrong(`${quote(path)} is a file here, and a directory for ${inside.place}`)
    else this.#files.set(path, at)
    this.addDirectory(path.slice(0, Math.max(0, path.lastIndexOf('/'))), at)
  }

  /** Every prefix of it is a directory too. */
  addDirectory(path: string, at: Value): void {
    for (let prefix = path; prefix !== ''; prefix = prefix.slice(0, Math.max(0, prefix.lastIndexOf('/')))) {
      const file = this.#files.get(prefix)
      if (file !== undefined) {
        at.wrong(`${quote(prefix)} is a directory here, and a file for ${file.place}`)
        return
      }
      if (!this.#directories.has(prefix)) this.#directories.set(prefix, at)
    }
  }
}
