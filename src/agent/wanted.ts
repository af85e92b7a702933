import { describeReference, type ObjectVersion, type WantedObject } from '../objects/types.js'
import { referencesOf } from '../config/references.js'
import type { DirectoryState } from './directory-state.js'

/** All objects that these directories need, each once, with the newest version of it that any of them has published. */
export function wantedObjects(states: Iterable<DirectoryState>): WantedObject[] {
  const wanted = new Map<string, WantedObject>()
  for (const state of states) {
    for (const reference of referencesOf(state.configuration)) {
      const { kind, namespace, name } = reference
      const published = state.objects.find(
        (object) => object.kind === kind && object.namespace === namespace && object.name === name,
      )
      const key = describeReference(reference)
      const known = wanted.get(key)?.published
      const newest = newer(known, published && { uid: published.uid, resourceVersion: published.resourceVersion })
      wanted.set(key, newest ? { reference, published: newest } : { reference })
    }
  }
  return [...wanted.values()]
}

/** Versions of one object of an API server compare as numbers; of anything else, the first one stands. */
function newer(a: ObjectVersion | undefined, b: ObjectVersion | undefined): ObjectVersion | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const decimal = /^\d+$/
  if (!decimal.test(a.resourceVersion) || !decimal.test(b.resourceVersion)) return a
  return BigInt(b.resourceVersion) > BigInt(a.resourceVersion) ? b : a
}
