import type { KubernetesObject, ObservedState } from './types.js'

/** Whether two observed states are the same, so that there is nothing new to report. */
export function isSameState(a: ObservedState | undefined, b: ObservedState): boolean {
  if (a === undefined) return false
  if (a.state === 'present' && b.state === 'present') return isSameObject(a.object, b.object)
  if (a.state === 'unknown' && b.state === 'unknown') return a.reason === b.reason && a.message === b.message
  return a.state === b.state
}

function isSameObject(a: KubernetesObject, b: KubernetesObject): boolean {
  return (
    a.uid === b.uid &&
    a.resourceVersion === b.resourceVersion &&
    a.terminating === b.terminating &&
    isSameData(a.data, b.data)
  )
}

/** Whether two objects hold the same keys with the same bytes. */
export function isSameData(a: ReadonlyMap<string, Uint8Array>, b: ReadonlyMap<string, Uint8Array>): boolean {
  if (a.size !== b.size) return false
  for (const [key, bytes] of a) {
    const other = b.get(key)
    if (other === undefined || Buffer.compare(bytes, other) !== 0) return false
  }
  return true
}
