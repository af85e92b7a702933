/*
 * Faults for which kubelet's validation refuses a Pod: kubelet takes the manifest for none, and ends the pod that ran from the file before. The
 * types are right already (type-faults.ts).
 */
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { oldTolerations, jsonOf } from './annotation-checks.js'
import type { FieldPlace } from './place.js'
import { podRules } from './pod-rules.js'
import type { Kubelets, Rule } from './rule.js'
import { fieldOf, isKnownType, parts, type PodPart } from './visit.js'
import { digitsOf } from '../../yaml/exact-number.js'
import type { Path } from '../../yaml/manifest-text.js'

export interface PodFault {
  /** As in `spec.containers[1].name`. */
  readonly field: string
  /** Quotes no value but names. */
  readonly problem: string
  /** `never`: kubelet takes the pod, and never runs it. `unknown`: a word that a later kubelet may know. */
  readonly kind: 'refused' | 'never' | 'unknown'
  /** Those that refuse the pod for it. */
  readonly kubelets: Kubelets
}

/** Every fault of the pod, in its own order. `node`: its name, where it is known. */
export function* podFaults(pod: JsonMap, node?: string): Generator<PodFault> {
  const about = { metadata: asMap(pod.metadata) ?? {}, spec: asMap(pod.spec) ?? {}, node }
  for (const part of typedParts(pod, about.metadata)) {
    if (isPassedOver(part) || !isKnownType(part.type)) continue
    const place = fieldPlaceOf(part, about)
    for (const rule of podRules.get(part.type) ?? []) yield* faultsBy(rule, place)
  }
}

function* typedParts(pod: JsonMap, metadata: JsonMap): Generator<PodPart> {
  yield* parts(pod)
  const annotated = asText(asMap(metadata.annotations)?.[oldTolerations])
  if (annotated) yield* parts(jsonOf(annotated), 'Toleration[]', ['metadata', 'annotations', oldTolerations])
}

/** kubelet looks at no status of a manifest; ephemeral containers and templates of claims are refused as a whole. */
function isPassedOver({ path }: PodPart): boolean {
  return path[0] === 'status' || path[1] === 'ephemeralContainers' || path.includes('volumeClaimTemplate')
}

function fieldPlaceOf(
  { value, path, holder }: PodPart,
  about: Pick<FieldPlace, 'metadata' | 'spec' | 'node'>,
): FieldPlace {
  const [, list = '', index] = path
  const container = asMap(asList(about.spec[list])[Number(index)])
  return {
    ...about,
    owner: asMap(value) ?? {},
    path,
    list: asList(holder),
    index: Number(path.at(-1)),
    container: (/ontainers$/.test(String(list)) && container) || {},
  }
}

function* faultsBy({ fields, check, problem, kubelets, never }: Rule, place: FieldPlace): Generator<PodFault> {
  for (const field of fields)
    for (const [steps, value] of valuesAt(field, place.owner)) {
      const fault = { field: fieldOf([...place.path, ...steps]), problem, kubelets }
      if (typeof check === 'function') {
        if (!check(value ?? undefined, place, String(steps.at(-1) ?? '')))
          yield { ...fault, kind: never ? 'never' : 'refused' }
      } else if (!isAmong(value, check)) yield { ...fault, kind: isUnknown(value) ? 'unknown' : 'refused' }
    }
}

type FoundValue = readonly [steps: readonly (string | number)[], value: unknown]

function valuesAt(field: string, owner: JsonMap): readonly FoundValue[] {
  if (field === '.') return [[[], owner]]
  const [, name = '', of] = /^(\w+)(\[\]|\{\}|\{key\})?$/.exec(field) ?? []
  const value = owner[name]
  if (of === undefined) return [[[name], value]]
  if (of === '[]') return asList(value).map((item, index) => [[name, index], item])
  return Object.entries(asMap(value) ?? {}).map(([key, item]) => [[name, key], item])
}

function isAmong(value: unknown, { words, none }: Exclude<Rule['check'], (...all: never) => unknown>): boolean {
  const text = asText(value)
  if (text === undefined || text === '') return none === 'defaulted' || (none === 'given' && text === undefined)
  return words.includes(text)
}

const letters = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

const knownWords = new Set(
  [...podRules.values()].flat().flatMap(({ check }) => (typeof check === 'function' ? [] : check.words.map(letters))),
)

/** Neither empty, nor a word of any enumeration, however it is written. */
function isUnknown(value: unknown): boolean {
  const text = asText(value) ?? ''
  return /^[A-Za-z][A-Za-z0-9+-]*$/.test(text) && !knownWords.has(letters(text))
}

/*
 * Faults that kubelet's decoder refuses in a Pod: a value of another type than its field has. The file source decodes JSON that was made of
 * YAML without knowing the fields' types, so that `value: 8080` is a number there, and no text (kubernetes:
 * pkg/kubelet/config/common.go, tryDecodeSinglePod; sigs.k8s.io/json). A pod that runs from the file is ended then. Fields
 * that stand in no type are dropped, and null is the same as nothing, everywhere.
 */

export interface TypeFault {
  readonly path: Path
  /** As in `spec.containers[0].env[1].value`. */
  readonly field: string
  /** Quotes no value. */
  readonly problem: string
}

interface ScalarType {
  readonly name: string
  readonly is: (value: unknown) => boolean
}

const scalarTypes: ReadonlyMap<string, ScalarType> = new Map<string, ScalarType>([
  ['text', { name: 'text', is: isText }],
  ['flag', { name: 'true or false', is: (value) => typeof value === 'boolean' }],
  ['int32', { name: 'a whole number, -2147483648 to 2147483647', is: (value) => isInteger(value, 32) }],
  ['int64', { name: 'a whole number of at most 64 bits', is: (value) => isInteger(value, 64) }],
  ['intOrText', { name: 'a whole number or text', is: (value) => isText(value) || isInteger(value, 32) }],
  ['quantity', { name: 'a quantity, such as 500m or 1.5Gi', is: isQuantity }],
  ['time', { name: 'a time, such as 2006-01-02T15:04:05Z', is: isKubernetesTime }],
  ['any', { name: 'anything', is: () => true }],
])

/** The first value that kubelet's decoder refuses; undefined where it takes the pod. */
export function findTypeFault(pod: unknown): TypeFault | undefined {
  for (const { value, type, path } of parts(pod)) {
    const problem = typeProblem(value, type)
    if (problem !== undefined) return { path, field: fieldOf(path), problem }
  }
  return undefined
}

function typeProblem(value: unknown, type: string): string | undefined {
  const scalar = scalarTypes.get(type)
  if (scalar !== undefined)
    return scalar.is(value)
      ? undefined
      : `must be ${scalar.name}, but is ${describeValue(value)}${typeAdvice(value, type)}`
  if (type.endsWith('[]')) return Array.isArray(value) ? undefined : `must be a list, but is ${describeValue(value)}`
  return asMap(value) ? undefined : `must be a map, but is ${describeValue(value)}`
}

function describeValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (digitsOf(value) !== undefined) return 'a number'
  if (typeof value === 'string') return 'other text'
  return typeof value === 'boolean' ? 'a boolean' : 'a map'
}

function typeAdvice(value: unknown, type: string): string {
  if (type === 'text' && (typeof value === 'boolean' || digitsOf(value) !== undefined)) return ': quote it'
  return typeof value === 'string' && /^(?:-?\d+|true|false)$/.test(value) ? ': write it without quotes' : ''
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

/** Go's decoder refuses a number with a point or an exponent as an integer, even `1.0`. */
function isInteger(value: unknown, bits: number): boolean {
  const digits = digitsOf(value) ?? ''
  return /^-?\d+$/.test(digits) && BigInt.asIntN(bits, BigInt(digits)) === BigInt(digits)
}

/** apimachinery: pkg/api/resource, ParseQuantity. It also takes some without a digit for 0, and exponents of four digits. */
function isQuantity(value: unknown): boolean {
  const text = digitsOf(value) ?? value
  if (typeof text !== 'string') return false
  return /^ *[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[numkMGTPE]|[KMGTPE]i|[eE][-+]?\d{1,3})? *$/.test(text)
}

/** RFC 3339, as Go's time.Parse reads it. */
function isKubernetesTime(value: unknown): boolean {
  if (typeof value !== 'string') return false
  const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[-+](\d\d):(\d\d))$/.exec(value)
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, east = 0, past = 0] = (parts ?? [])
    .slice(1)
    .map((part: string | undefined) => Number(part ?? 0))
  const isDay =
    month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
  return parts !== null && isDay && hour < 24 && minute < 60 && second < 60 && east <= 24 && past < 60
}
