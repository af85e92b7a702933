/*
 * Faults that kubelet's decoder refuses in a Pod: a value of another type than its field has. The file source decodes JSON that was made of
 * YAML without knowing the fields' types, so that `value: 8080` is a number there, and no text (kubernetes:
 * pkg/kubelet/config/common.go, tryDecodeSinglePod; sigs.k8s.io/json). A pod that runs from the file is ended then. Fields
 * that stand in no type are dropped, and null is the same as nothing, everywhere.
 */
import { digitsOf } from '../../yaml/exact-number.js'
import type { Path } from '../../yaml/manifest-text.js'
import { asMap } from '../json.js'
import { fieldOf, parts } from './visit.js'

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
  ['time', { name: 'a time, such as 2006-01-02T15:04:05Z', is: isTime }],
  ['any', { name: 'anything', is: () => true }],
])

/** The first value that kubelet's decoder refuses; undefined where it takes the pod. */
export function findTypeFault(pod: unknown): TypeFault | undefined {
  for (const { value, type, path } of parts(pod)) {
    const problem = problemOf(value, type)
    if (problem !== undefined) return { path, field: fieldOf(path), problem }
  }
  return undefined
}

function problemOf(value: unknown, type: string): string | undefined {
  const scalar = scalarTypes.get(type)
  if (scalar !== undefined)
    return scalar.is(value) ? undefined : `must be ${scalar.name}, but is ${kindOf(value)}${advice(value, type)}`
  if (type.endsWith('[]')) return Array.isArray(value) ? undefined : `must be a list, but is ${kindOf(value)}`
  return asMap(value) ? undefined : `must be a map, but is ${kindOf(value)}`
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (digitsOf(value) !== undefined) return 'a number'
  if (typeof value === 'string') return 'other text'
  return typeof value === 'boolean' ? 'a boolean' : 'a map'
}

function advice(value: unknown, type: string): string {
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
function isTime(value: unknown): boolean {
  if (typeof value !== 'string') return false
  const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[-+](\d\d):(\d\d))$/.exec(value)
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, east = 0, past = 0] = (parts ?? [])
    .slice(1)
    .map((part: string | undefined) => Number(part ?? 0))
  const isDay =
    month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
  return parts !== null && isDay && hour < 24 && minute < 60 && second < 60 && east <= 24 && past < 60
}
