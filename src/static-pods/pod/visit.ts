/** Goes through a pod with the type of each part, as kubelet's decoder has them. */
import type { Path } from '../../yaml/manifest-text.js'
import { asList, asMap } from '../json.js'
import { podTypes } from './pod-types.js'

export interface PodPart {
  readonly value: unknown
  /** As in pod-types.ts: `text`, `Container`, `EnvVar[]`, `quantity{}`. */
  readonly type: string
  readonly path: Path
  /** What holds it: a list, or a map. */
  readonly holder: unknown
}

const fieldTypes: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  Object.entries(podTypes).map(([type, fields]) => [
    type,
    new Map(Object.entries(fields).flatMap(([of, names]) => names.split(' ').map((name) => [name, of] as const))),
  ]),
)

/** The type of a field; undefined for one that the decoder drops. */
export function typeOfField(type: string, field: string): string | undefined {
  return fieldTypes.get(type)?.get(field)
}

/** Whether values of the type are maps of known fields. */
export function isKnownType(type: string): boolean {
  return fieldTypes.has(type)
}

/**
 * Each part of the pod that is not null, a part before what is in it, in the pod's own order. Fields that stand in no type are passed over: the
 * decoder drops them. Of a value of another type than its field has, nothing is visited inside.
 */
export function* parts(value: unknown, type = 'Pod', path: Path = [], holder?: unknown): Generator<PodPart> {
  if (value === null || value === undefined) return
  yield { value, type, path, holder }
  const inner = type.slice(0, -2)
  if (type.endsWith('[]')) {
    // Go takes null for an item that has nothing in it.
    const none = fieldTypes.has(inner) ? {} : undefined
    for (const [index, item] of asList(value).entries()) yield* parts(item ?? none, inner, [...path, index], value)
    return
  }
  const fields = fieldTypes.get(type)
  if (fields === undefined && !type.endsWith('{}')) return
  for (const [name, field] of Object.entries(asMap(value) ?? {})) {
    const of = fields === undefined ? inner : fields.get(name)
    if (of !== undefined) yield* parts(field, of, [...path, name], value)
  }
}

/** As in `spec.containers[0].env[1].value`. */
export function fieldOf(path: Path): string {
  const [first = '', ...others] = path
  return `${first}${others.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('')}`
}
