import { objectName } from '../object-name.js'
import type { Pin, RecordedObject } from '../durable/types.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import type { ObjectKind, ObjectReference, ObservedState } from '../objects/types.js'

/**
 * Whether something has come since an operator rolled back: a newer version of an object, another object by its name, or none any more.
 * Versions that have no order are newer where they differ. `objects`: those of the content to publish.
 */
export function isNewer(
  objects: readonly RecordedObject[],
  { from }: Pin,
  latest: (reference: ObjectReference) => ObservedState | undefined,
): boolean {
  const now = new Set(objects.map(objectName))
  const before = new Map(from.map((object) => [objectName(object), object]))
  const isGone = (object: RecordedObject): boolean =>
    !now.has(objectName(object)) || latest({ ...object, kind: object.kind as ObjectKind })?.state === 'absent'
  const isLater = (object: RecordedObject): boolean => {
    const known = before.get(objectName(object))
    if (known?.uid !== object.uid) return true
    const order = compareResourceVersions(object.resourceVersion, known.resourceVersion)
    return order === undefined ? object.resourceVersion !== known.resourceVersion : order > 0
  }
  return from.some(isGone) || objects.some(isLater)
}
