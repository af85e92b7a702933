import type { Reason } from '../reasons.js'

/* What the agent says of a directory, as status, logs and reports name it. */

/** An object as status and logs name it. */
export interface PublishedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

/** Only what status and logs show: a record's list of files would be held in memory for nothing. */
export function withoutPaths(object: PublishedObject): PublishedObject {
  const { kind, namespace, name, uid, resourceVersion } = object
  return { kind, namespace, name, uid, resourceVersion }
}

/**
 * What the agent says of a directory, in the shape of Kubernetes' own conditions. `Published`: the disk holds the newest objects that
 * the source has reported (`Unknown`: they are visible, but may not survive a power cut). `Fresh`: the source has confirmed that they
 * are the newest.
 */
export interface Condition {
  readonly type: 'Published' | 'Fresh'
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: Reason
  readonly message: string
  /** RFC 3339; when `status` last changed. */
  readonly lastTransitionTime: string
}

/** A condition without its history. */
export type ConditionState = Pick<Condition, 'status' | 'reason' | 'message'>

/** The condition in a new state: its transition time changes with its status only, as everywhere in Kubernetes. */
export function transition(
  type: Condition['type'],
  previous: Condition | undefined,
  { status, reason, message }: ConditionState,
  now: Date,
): Condition {
  if (previous?.status !== status) return { type, status, reason, message, lastTransitionTime: now.toISOString() }
  if (previous.reason === reason && previous.message === message) return previous
  return { type, status, reason, message, lastTransitionTime: previous.lastTransitionTime }
}

/** Content that must not be published, and why. */
export interface Rejection {
  readonly digest: string
  readonly error: Error
}
