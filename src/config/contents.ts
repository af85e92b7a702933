import type { ReadContent } from './content-conflicts.js'
import { mappingSchema, readFields, type Field, type Fields, type ValueType } from './field.js'
import { itemWith, selection, selectionFields, type SelectionContext } from './selections.js'
import { fileMode } from './ownership.js'
import { dataKey, referenceTo, type NamespaceDefault } from './object-names.js'
import { innerPath, into } from './paths.js'
import type { CombinedContent, ObjectContent } from './types.js'
import type { ObjectReference } from '../objects/types.js'
import { boolean, listOf } from './value-types.js'
import type { MappingValue, Value } from './value.js'

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
    type: listOf({ read: readPart, schema: () => mappingSchema(partFields, objects) }),
    description: 'the keys, in the order in which the file holds them',
    required: '[{ secret: NAME, key: KEY }]',
  },
  mode: { type: fileMode, description: "of the file; default: the directory's `fileMode`" },
  optional: optional('leave the file out while a part of it is absent'),
} satisfies Fields<NamespaceDefault>

const objectTypes = namesOf(objects)
const types = [...objectTypes, ...namesOf(selections), ...namesOf(combined)] as const

/** An element of `contents`. */
export const content: ValueType<ReadContent, NamespaceDefault> = {
  read: readContent,
  schema: () => ({
    anyOf: [
      mappingSchema(objectFields, objects),
      mappingSchema({}, selections),
      mappingSchema(combinedFields, combined),
    ],
  }),
}

function namesOf<Table extends object>(table: Table): readonly (keyof Table)[] {
  return Object.keys(table) as (keyof Table)[]
}

function readContent(value: Value, defaults: NamespaceDefault): ReadContent | undefined {
  const { node } = value
  const given = (name: string): boolean => node.kind === 'mapping' && node.entries.has(name)
  const selection = namesOf(selections).find(given)
  const isCombined = given('combine')
  const misplaced = isCombined
    ? { items: 'it belongs to secret and configMap: here it is from', into: 'put it into combine' }
    : { from: 'it belongs to combine', mode: 'give each of the items its mode, or the directory a fileMode' }
  const own = Object.keys(isCombined ? combinedFields : objectFields)
  const fields =
    selection === undefined
      ? value.mapping([...types, ...own], { ...misplaced, selector: 'write secrets: { selector: … }' })
      : value.mapping(types, Object.fromEntries(selectionFields.map((name) => [name, `put it into ${selection}`])))
  const type = fields?.exactlyOne(types)
  if (fields === undefined || type === undefined) return undefined
  if (type === 'combine') return readCombined(fields, defaults)
  if (type === 'secret' || type === 'configMap') return readObject(fields, type, defaults)
  const selected = fields.field(type)
  return selected && selections[type].type.read(selected, { place: value.place, defaults })
}

function readObject(
  fields: MappingValue,
  type: keyof typeof objects,
  defaults: NamespaceDefault,
): ReadContent | undefined {
  const { value } = fields
  const reference = readReference(fields, type, defaults)
  const { read, at, wrong } = readFields(fields, objectFields, undefined)
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

function readCombined(fields: MappingValue, defaults: NamespaceDefault): ReadContent | undefined {
  const { read: choice, at } = readFields(fields, combined, undefined)
  const { from, mode, optional } = readFields(fields, combinedFields, defaults).read
  if (choice.combine === undefined || at.combine === undefined || from === undefined) return undefined
  const content: CombinedContent = {
    type: 'combine',
    place: fields.value.place,
    path: choice.combine,
    from,
    mode,
    optional,
  }
  return { content, at: at.combine, itemPaths: [] }
}

function readPart(value: Value, defaults: NamespaceDefault): { reference: ObjectReference; key: string } | undefined {
  const fields = value.mapping([...objectTypes, ...Object.keys(partFields)], {
    optional: 'set optional on the combined file as a whole',
  })
  const type = fields?.exactlyOne(objectTypes)
  const reference = type && fields && readReference(fields, type, defaults)
  const key = fields && readFields(fields, partFields, undefined).read.key
  return reference === undefined || key === undefined ? undefined : { reference, key }
}

function readReference(
  fields: MappingValue,
  type: keyof typeof objects,
  defaults: NamespaceDefault,
): ObjectReference | undefined {
  const value = fields.field(type)
  return value && objects[type].type.read(value, defaults)
}
