/** What a check of a value sees around it. */
import { digitsOf } from '../../yaml/exact-number.js'
import type { Path } from '../../yaml/manifest-text.js'
import { asMap, asText, type JsonMap } from '../json.js'

export interface FieldPlace {
  /** What has the field. */
  readonly owner: JsonMap
  readonly path: Path
  /** The list that the owner stands in; empty elsewhere. */
  readonly list: readonly unknown[]
  readonly index: number
  readonly metadata: JsonMap
  readonly spec: JsonMap
  /** The container around; empty elsewhere. */
  readonly container: JsonMap
  /** The node's name, where it is known. */
  readonly node: string | undefined
}

/** Whether kubelet takes the value; it is undefined where the pod has none, or null. `key`: the field's name, or that of a map's entry. */
export type Check = (value: unknown, place: FieldPlace, key: string) => boolean

/** null is as good as absent to Go's decoder. */
export function isThere(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** 0 where there is none, as Go has it. */
export function wholeOf(value: unknown): number {
  return Number(digitsOf(value) ?? 0)
}

/** Empty where there is none, as Go has it. */
export function textOf(value: unknown): string {
  return asText(value) ?? ''
}

const derived = new WeakMap<object, Map<string, unknown>>()

/** What is found out once about a part of the pod, however many checks ask. */
export function once<T>(about: object, what: string, find: () => T): T {
  const known = derived.get(about) ?? new Map<string, unknown>()
  derived.set(about, known)
  if (!known.has(what)) known.set(what, find())
  return known.get(what) as T
}

/** Where each key comes first in a list; an empty one is passed over. */
export function isFirst({ list, index, owner }: FieldPlace, what: string, keyOf: (item: JsonMap) => string): boolean {
  const first = once(list, what, () => {
    const keys = list.map((item, at) => [keyOf(asMap(item) ?? {}), at] as const)
    return new Map(keys.reverse())
  })
  return keyOf(owner) === '' || first.get(keyOf(owner)) === index
}
