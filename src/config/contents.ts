import type { ReadContent } from './content-conflicts.js'
import { readItem } from './items.js'
import { readFileMode } from './ownership.js'
import { readKey, readReference, type NamespaceDefault } from './object-names.js'
import { readInnerPath, readInto } from './paths.js'
import { readSelection, selectionFields } from './selections.js'
import type { CombinedContent, ObjectContent } from './types.js'
import type { ObjectReference } from '../objects/types.js'
import type { MappingValue, Value } from './value.js'

const objectTypes = ['secret', 'configMap'] as const
const objectKinds = { secret: 'Secret', configMap: 'ConfigMap' } as const
const selectionTypes = ['secrets', 'configMaps'] as const
const types = [...objectTypes, ...selectionTypes, 'combine'] as const
const objectFields = ['into', 'optional', 'items']
const combinedFields = ['from', 'mode', 'optional']

export function readContent(value: Value, defaults: NamespaceDefault): ReadContent | undefined {
  const { node } = value
  const given = (name: string): boolean => node.kind === 'mapping' && node.entries.has(name)
  const selection = selectionTypes.find(given)
  const combined = given('combine')
  const misplaced = combined
    ? { items: 'it belongs to secret and configMap: here it is from', into: 'put it into combine' }
    : { from: 'it belongs to combine', mode: 'give each of the items its mode, or the directory a fileMode' }
  const own = combined ? combinedFields : objectFields
  const fields =
    selection === undefined
      ? value.mapping([...types, ...own], { ...misplaced, selector: 'write secrets: { selector: … }' })
      : value.mapping(types, Object.fromEntries(selectionFields.map((name) => [name, `put it into ${selection}`])))
  const type = fields?.exactlyOne(types)
  if (fields === undefined || type === undefined) return undefined
  if (type === 'secrets' || type === 'configMaps') {
    const selected = fields.field(type)
    return selected && readSelection(selected, type, value.place, defaults)
  }
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
