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
import { typeOfField } from './visit.js'

/** Apart from metadata.uid, which each installer gives in its own way. */
export function isSamePod(a: Manifest, b: Manifest): boolean {
  return isDeepStrictEqual(normal(withoutUid(a.pod), 'Pod'), normal(withoutUid(b.pod), 'Pod'))
}

/** Fields whose false or 0 Go leaves out, since absent means the same. */
const zeroIsAbsent = new Set([
  ...['hostNetwork', 'hostPID', 'hostIPC', 'stdin', 'stdinOnce', 'tty', 'readOnly', 'hostPort'],
  ...['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'],
])

/** Fields that Go writes as `{}` where they are absent. Any other one has a meaning of its own, as `image: {}` of a volume. */
const emptyIsAbsent = new Set(['Pod.metadata', 'Pod.status', 'Container.resources'])

function withoutUid(pod: JsonMap): JsonMap {
  const metadata = Object.entries(asMap(pod.metadata) ?? {}).filter(([field]) => field !== 'uid')
  return { ...pod, metadata: Object.fromEntries(metadata) }
}

/**
 * undefined for a value that means the same as nothing; in a map, and in a list, each means something. `type`: as in pod-types.ts; undefined: kubelet's
 * decoder knows no such field, but that of a newer kubelet may. `field`: the type that has the field, and its name.
 */
function normal(
  value: unknown,
  type: string | undefined,
  field: readonly [type: string, name: string] = ['', ''],
): unknown {
  if (value === null || type === undefined) return value ?? undefined
  if (type === 'quantity') return quantity(value)
  if (Array.isArray(value))
    return value.length === 0 ? undefined : value.map((item: unknown) => normal(item, type.slice(0, -2)) ?? null)
  const map = asMap(value)
  if (map === undefined) {
    const isZero = (type === 'text' && value === '') || ((value === false || value === 0) && zeroIsAbsent.has(field[1]))
    return isZero ? undefined : value
  }
  const isNamed = type.endsWith('{}')
  const kept = Object.entries(map)
    .map(([name, inner]) => {
      if (isNamed) return [name, normal(inner, type.slice(0, -2)) ?? null] as const
      return [name, normal(inner, typeOfField(type, name), [type, name])] as const
    })
    .filter(([, inner]) => inner !== undefined)
  const isAbsent = kept.length === 0 && (isNamed || emptyIsAbsent.has(field.join('.')))
  return isAbsent ? undefined : Object.fromEntries(kept)
}

/** A quantity in one form: `1000m` and `1` are equal. Any other value stays as it is. */
function quantity(value: unknown): unknown {
  const read = parseQuantity(value)
  if (read !== undefined) return read.digits === 0n ? '0' : `${read.digits}e${read.power}`
  return digitsOf(value) ?? value
}
