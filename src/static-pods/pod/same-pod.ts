/*
 * Whether two manifests are of the same pod, however they are formatted. Go's encoder of v1.Pod, which library-go's installer uses,
 * writes empty parts (`status: {}`, `creationTimestamp: null`), leaves out false and 0 where the field is no pointer, and writes
 * quantities in one form (kubernetes: staging/src/k8s.io/api/core/v1/types.go; apimachinery pkg/api/resource).
 */
import { isDeepStrictEqual } from 'node:util'
import { digitsOf } from '../../yaml/exact-number.js'
import { asMap, type JsonMap } from '../json.js'
import type { Manifest } from './manifest.js'
import { parseQuantity } from './quantity.js'

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

/** A quantity in one form: `1000m` and `1` are equal. Any other value stays as it is. */
function quantity(value: unknown): unknown {
  const read = parseQuantity(value)
  if (read !== undefined) return read.digits === 0n ? '0' : `${read.digits}e${read.power}`
  const text = digitsOf(value) ?? value
  return typeof text === 'string' ? text : normal(value, '')
}
