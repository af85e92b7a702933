/*
 * Whether two manifests are of the same pod, however they are formatted. Go's encoder of v1.Pod, which library-go's installer uses,
 * writes empty parts (`status: {}`, `creationTimestamp: null`), leaves out false and 0 where the field is no pointer, and writes
 * quantities in one form (kubernetes: staging/src/k8s.io/api/core/v1/types.go; apimachinery pkg/api/resource).
 */
import { isDeepStrictEqual } from 'node:util'
import { digitsOf } from '../../yaml/exact-number.js'
import { asMap, type JsonMap } from '../json.js'
import type { Manifest } from './manifest.js'

/** Apart from metadata.uid, which each installer gives in its own way. */
export function isSamePod(a: Manifest, b: Manifest): boolean {
  return isDeepStrictEqual(normal(withoutUid(a.pod), ''), normal(withoutUid(b.pod), ''))
}

/** Fields whose false or 0 Go leaves out, since absent means the same. */
const zeroIsAbsent = new Set([
  ...['hostNetwork', 'hostPID', 'hostIPC', 'stdin', 'stdinOnce', 'tty', 'readOnly', 'hostPort'],
  ...['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'],
])

/** Maps from names to quantities. */
const quantityMaps = new Set(['limits', 'requests', 'overhead'])
const quantities = new Set(['sizeLimit', 'divisor'])

function withoutUid(pod: JsonMap): JsonMap {
  const metadata = Object.entries(asMap(pod.metadata) ?? {}).filter(([field]) => field !== 'uid')
  return { ...pod, metadata: Object.fromEntries(metadata) }
}

/** undefined for a value that means the same as nothing. `key`: the field that holds it. */
function normal(value: unknown, key: string): unknown {
  if (quantities.has(key)) return quantity(value)
  if (Array.isArray(value))
    return value.length === 0 ? undefined : value.map((item: unknown) => normal(item, '') ?? null)
  const map = asMap(value)
  if (map !== undefined) {
    const kept = Object.entries(map)
      .map(([name, inner]) => [name, quantityMaps.has(key) ? quantity(inner) : normal(inner, name)] as const)
      .filter(([, inner]) => inner !== undefined)
    return kept.length === 0 ? undefined : Object.fromEntries(kept)
  }
  if (value === null || value === '') return undefined
  return (value === false || value === 0) && zeroIsAbsent.has(key) ? undefined : value
}

const binary = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 }
const decimal = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }

/** A quantity as a number and a power of ten: `1000m` and `1` are equal. Any other value stays as it is. */
function quantity(value: unknown): unknown {
  const text = digitsOf(value) ?? value
  if (typeof text !== 'string') return normal(value, '')
  const parts = /^([+-]?)(\d*)\.?(\d*)(?:([KMGTPE]i)|([eE][+-]?\d{1,3})|([numkMGTPE]?))$/.exec(text)
  const [, sign, whole = '', fraction = '', two, exponent, ten = ''] = parts ?? []
  if (parts === null || whole + fraction === '') return text
  const factor = two === undefined ? 1n : 1024n ** BigInt(binary[two as keyof typeof binary])
  let digits = BigInt(whole + fraction) * factor
  let power =
    (exponent === undefined ? decimal[ten as keyof typeof decimal] : Number(exponent.slice(1))) - fraction.length
  if (digits === 0n) return '0'
  while (digits % 10n === 0n) {
    digits /= 10n
    power++
  }
  return `${sign === '-' ? '-' : ''}${digits}e${power}`
}
