import { readFileMode } from './ownership.js'
import { readKey, readReference, type NamespaceDefault } from './object-names.js'
import { readInnerPath, readInto } from './paths.js'
import type { CombinedContent, Content, Item, ObjectContent } from './types.js'
import type { ObjectReference } from '../objects/types.js'
import type { MappingValue, Value } from './value.js'

/** A content with the values that its paths come from, for the checks that compare contents with each other. */
export interface ReadContent {
  readonly content: Content
  /** Where `into`, or the combined file's path, is written. */
  readonly at: Value
  /** Where each item's path is written, in the order of the items. */
  readonly itemPaths: readonly Value[]
}

const objectTypes = ['secret', 'configMap'] as const
const objectKinds = { secret: 'Secret', configMap: 'ConfigMap' } as const
const types = [...objectTypes, 'combine'] as const
const objectFields = ['into', 'optional', 'items']
const combinedFields = ['from', 'mode', 'optional']

export function readContent(value: Value, defaults: NamespaceDefault): ReadContent | undefined {
  const { node } = value
  const combined = node.kind === 'mapping' && node.entries.has('combine')
  const misplaced = combined
    ? { items: 'it belongs to secret and configMap: here it is from', into: 'put it into combine' }
    : { from: 'it belongs to combine', mode: 'give each of the items its mode, or the directory a fileMode' }
  const fields = value.mapping([...types, ...(combined ? combinedFields : objectFields)], misplaced)
  const type = fields?.exactlyOne(types)
  if (fields === undefined || type === undefined) return undefined
  const optional = fields.field('optional')?.boolean() ?? false
  return type === 'combine' ? readCombined(fields, optional, defaults) : readObject(fields, type, optional, defaults)
}

function readObject(
  fields: MappingValue,
  type: keyof typeof objectKinds,
  optional: boolean,
  defaults: NamespaceDefault,
): ReadContent | undefined {
  const { value } = fields
  const reference = readOneReference(fields, type, defaults)
  const intoValue = fields.field('into')
  const into = intoValue === undefined ? '' : readInto(intoValue)
  const items = fields.field('items')?.list().map(readItem)
  if (reference === undefined || into === undefined) return undefined
  const read = items?.filter((item) => item !== undefined)
  const content: ObjectContent = {
    type: 'object',
    place: value.place,
    reference,
    into,
    optional,
    items: read?.map(({ item }) => item),
  }
  return { content, at: intoValue ?? value, itemPaths: read?.map(({ at }) => at) ?? [] }
}

function readItem(value: Value): { item: Item; at: Value } | undefined {
  const fields = value.mapping(['key', 'path', 'mode'])
  const keyValue = fields?.required('key', 'tls.crt')
  const key = keyValue && readKey(keyValue)
  const at = fields?.required('path', key ?? 'tls.crt')
  const path = at && readInnerPath(at)
  const modeValue = fields?.field('mode')
  const mode = modeValue && readFileMode(modeValue)
  if (key === undefined || path === undefined || at === undefined) return undefined
  return { item: { key, path, mode }, at }
}

function readCombined(fields: MappingValue, optional: boolean, defaults: NamespaceDefault): ReadContent | undefined {
  const at = fields.field('combine')
  const path = at && readInnerPath(at)
  const modeValue = fields.field('mode')
  const mode = modeValue && readFileMode(modeValue)
  const parts = fields.required('from', '[{ secret: NAME, key: KEY }]')?.list()
  const from = parts?.map((part) => readPart(part, defaults)).filter((part) => part !== undefined)
  if (path === undefined || at === undefined || from === undefined) return undefined
  const content: CombinedContent = { type: 'combine', place: fields.value.place, path, from, mode, optional }
  return { content, at, itemPaths: [] }
}

function readPart(value: Value, defaults: NamespaceDefault): { reference: ObjectReference; key: string } | undefined {
  const fields = value.mapping([...objectTypes, 'key'], {
    optional: 'set optional on the combined file as a whole',
  })
  const type = fields?.exactlyOne(objectTypes)
  const reference = type && fields && readOneReference(fields, type, defaults)
  const keyValue = fields?.required('key', 'tls.crt')
  const key = keyValue && readKey(keyValue)
  return reference === undefined || key === undefined ? undefined : { reference, key }
}

function readOneReference(
  fields: MappingValue,
  type: keyof typeof objectKinds,
  defaults: NamespaceDefault,
): ObjectReference | undefined {
  const value = fields.field(type)
  return value && readReference(value, objectKinds[type], defaults)
}
