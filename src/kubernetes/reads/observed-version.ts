/** Reads the version of one object from an answer of the API. */
import { objectName } from '../../message-text.js'
import type { ObservedVersion } from '../../objects/stored-object.js'
import type { ObjectReference } from '../../objects/types.js'
import { decodeObject, InvalidObjectError } from './decode.js'
import { field, ApiError } from './api-error.js'
import { isIdentifier, longestName, longestVersion } from '../../kubernetes-names.js'
import { describeTarget, objectTarget, type ApiTarget } from './requests.js'
import { objectLabels } from './selections.js'

/**
 * The object is there. An undecodable object counts as observed, with its version all the same.
 * @throws ApiError if the server answered with another object
 */
export function observeObject(reference: ObjectReference, json: unknown): ObservedVersion {
  const metadata = field(json, 'metadata')
  const [name, namespace] = [field(metadata, 'name'), field(metadata, 'namespace')]
  if (name !== reference.name || namespace !== reference.namespace) {
    throw new ApiError(
      'protocol',
      `${objectName(reference)}: the API server answered with another object: does a proxy drop the fieldSelector?`,
    )
  }
  try {
    const object = decodeObject(reference, json)
    const { resourceVersion, uid } = object
    return { observation: { state: 'present', object }, resourceVersion, uid, labels: objectLabels(json) }
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error
    return {
      observation: {
        state: 'unknown',
        reason: 'ObjectInvalid',
        message: `${objectName(reference)}: ${error.message}`,
      },
      resourceVersion: resourceVersionOf(json),
      uid: metadataUid(json) ?? '',
      labels: objectLabels(json),
    }
  }
}

/** The object is not there, as of this version of the collection. */
export function observeAbsence(resourceVersion: string | undefined): ObservedVersion {
  return { observation: { state: 'absent' }, resourceVersion, uid: undefined }
}

/**
 * The items of a list. Each list of an API server has a resourceVersion: one without it comes from a proxy or another program, and
 * proves that nothing is absent.
 * @throws ApiError
 */
export function itemsOf(json: unknown, target: ApiTarget): readonly unknown[] {
  const items = field(json, 'items')
  // Go prints an empty list as null.
  if (items !== null && !Array.isArray(items)) {
    throw new ApiError('protocol', `${describeTarget(target)}: the API server's answer is not a list`)
  }
  if (resourceVersionOf(json) === undefined) {
    throw new ApiError(
      'protocol',
      `${describeTarget(target)}: the list has no resourceVersion: a proxy, or another program, has answered`,
    )
  }
  return (items ?? []) as readonly unknown[]
}

/**
 * What a list of this one object says.
 * @throws ApiError if it is no list of an API server
 */
export function observeList(reference: ObjectReference, json: unknown): ObservedVersion {
  const [item, ...others] = itemsOf(json, objectTarget(reference))
  if (item === undefined) return observeAbsence(resourceVersionOf(json))
  // More than the one: the selector was dropped on the way, and any of them may be meant.
  return observeObject(reference, others.length === 0 ? item : undefined)
}

/** metadata.name of an object. */
export function metadataName(json: unknown): string | undefined {
  const name = field(field(json, 'metadata'), 'name')
  return typeof name === 'string' ? name : undefined
}

/** metadata.uid of an object. */
export function metadataUid(json: unknown): string | undefined {
  const uid = field(field(json, 'metadata'), 'uid')
  return typeof uid === 'string' && isIdentifier(uid, longestName) ? uid : undefined
}

/** metadata.resourceVersion of an object, a list or a bookmark. */
export function resourceVersionOf(json: unknown): string | undefined {
  const version = field(field(json, 'metadata'), 'resourceVersion')
  return typeof version === 'string' && isIdentifier(version, longestVersion) ? version : undefined
}
