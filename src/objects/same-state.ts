import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { KubernetesObject, ObservedState, UnloadedObject } from './types.js'

/** Whether two observed states are the same, so that there is nothing new to report. */
export function isSameState(a: ObservedState | undefined, b: ObservedState): boolean {
  if (a === undefined) return false
  if (hasObject(a) && hasObject(b)) return isSameStored(a.object, b.object)
  if (a.state === 'unknown' && b.state === 'unknown') return a.reason === b.reason && a.message === b.message
  if (a.state === 'selected' && b.state === 'selected') return isDeepStrictEqual(a.names, b.names)
  return a.state === b.state
}

type AnyObject = KubernetesObject | UnloadedObject

/** Whether the object is there, loaded or not. */
export function hasObject(state: ObservedState): state is Extract<ObservedState, { object: AnyObject }> {
  return state.state === 'present' || state.state === 'unloaded'
}

function isSameStored(a: AnyObject, b: AnyObject): boolean {
  return (
    a.uid === b.uid && a.resourceVersion === b.resourceVersion && a.terminating === b.terminating && isSameContent(a, b)
  )
}

/** Whether two objects hold the same content, be it loaded or not. */
export function isSameContent(a: AnyObject, b: AnyObject): boolean {
  if ('data' in a && 'data' in b) return isSameData(a.data, b.data)
  return digestOf(a) === digestOf(b)
}

/** The object without its content. */
export function unloaded(object: KubernetesObject): UnloadedObject {
  const { reference, uid, resourceVersion, terminating } = object
  return { reference, uid, resourceVersion, terminating, digest: digestOf(object) }
}

/** Of the keys in their order, each with the length of its bytes. */
function digestOf(object: AnyObject): string {
  if (!('data' in object)) return object.digest
  const hash = createHash('sha256')
  for (const key of [...object.data.keys()].sort()) {
    const bytes = object.data.get(key) ?? new Uint8Array()
    hash.update(`${key}/${bytes.length}/`).update(bytes)
  }
  return hash.digest('base64')
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
