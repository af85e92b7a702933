/** Reads `secrets: { selector: app=web, into: '{name}' }`, and `configMaps` alike. */
import { parseSelector, SelectorError } from '../label-selector.js'
import { selectionReference } from '../objects/types.js'
import { quote } from '../quote.js'
import type { ReadContent } from './content-conflicts.js'
import { readItem } from './items.js'
import { readNamespace, type NamespaceDefault } from './object-names.js'
import { readInto } from './paths.js'
import { placeholder } from './references.js'
import type { SelectedContent } from './types.js'
import type { Value } from './value.js'

export const selectionFields = ['selector', 'namespace', 'into', 'optional', 'items']

const misplaced = {
  matchLabels: 'write selector: app=web',
  matchExpressions: 'write selector: app in (web,db)',
  label: 'write selector: app=web',
  name: 'an object with a known name is secret: NAME, or configMap: NAME',
}

const kinds = { secrets: 'Secret', configMaps: 'ConfigMap' } as const

/** `place`: of the content as a whole. */
export function readSelection(
  value: Value,
  type: keyof typeof kinds,
  place: string,
  defaults: NamespaceDefault,
): ReadContent | undefined {
  if (!defaults.selectable) {
    const rights = 'set source.kubernetes.watch: namespaces, which takes get, list and watch of all of them'
    value.wrong('a selector needs the labels of all objects of a namespace', rights)
  }
  const fields = value.mapping(selectionFields, misplaced)
  if (fields === undefined) return undefined
  const selectorValue = fields.required('selector', 'app=web')
  const selector = selectorValue && readSelector(selectorValue)
  const namespaceValue = fields.field('namespace')
  const namespace = namespaceValue === undefined ? defaults.namespace : readNamespace(namespaceValue)
  if (namespaceValue === undefined && namespace === undefined) defaults.unqualified.push({ value, name: undefined })
  const intoValue = fields.field('into')
  const into = intoValue === undefined ? placeholder : readPattern(intoValue)
  const optional = fields.field('optional')?.boolean() ?? false
  const items = fields
    .field('items')
    ?.list()
    .map(readItem)
    .filter((item) => item !== undefined)
  for (const { item, at } of items ?? []) checkPlaceholders(item.path, at)
  if (selector === undefined || namespace === undefined || into === undefined) return undefined
  const apart = into.includes(placeholder) || items?.every(({ item }) => item.path.includes(placeholder)) === true
  if (!apart) {
    const todo = `write into: '${placeholder}', or ${placeholder} in the path of each of the items`
    intoValue?.wrong(`${quote(into || '.')} is the same for all objects, and two of them may have the same key`, todo)
  }
  const content: SelectedContent = {
    type: 'selector',
    place,
    reference: selectionReference(kinds[type], namespace, selector),
    into,
    optional,
    items: items?.map(({ item }) => item),
  }
  return { content, at: intoValue ?? value, itemPaths: items?.map(({ at }) => at) ?? [] }
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

function readPattern(value: Value): string | undefined {
  // Without quotes, {name} is a mapping in YAML.
  if (value.node.kind === 'mapping') return value.wrong('must be a string, not a mapping', `quote it: '${placeholder}'`)
  const into = readInto(value)
  if (into !== undefined) checkPlaceholders(into, value)
  return into
}

function checkPlaceholders(path: string, at: Value): void {
  const unknown = path.match(/\{\w+\}/g)?.find((found) => found !== placeholder)
  if (unknown !== undefined) at.wrong(`${quote(unknown)} is not known`, `holdfast replaces ${placeholder} only`)
}
