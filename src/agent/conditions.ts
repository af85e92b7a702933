import type { Reason } from '../reasons.js'

/**
 * What is told of a directory, in the shape of Kubernetes' own conditions. `Published`: the disk holds the newest objects that the
 * source has told (`Unknown`: they are visible, but may not survive a power cut). `Fresh`: the source has confirmed that they are
 * the newest.
 */
export interface Condition {
  readonly type: 'Published' | 'Fresh'
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: Reason
  readonly message: string
  /** RFC 3339; when `status` last changed. */
  readonly lastTransitionTime: string
}

export type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>

/** The condition after a verdict: its transition time changes with its status only, as everywhere in Kubernetes. */
export function transition(
  type: Condition['type'],
  previous: Condition | undefined,
  verdict: Verdict,
  now: Date,
): Condition {
  const { status, reason, message } = verdict
  if (previous?.status !== status) return { type, status, reason, message, lastTransitionTime: now.toISOString() }
  if (previous.reason === reason && previous.message === message) return previous
  return { type, status, reason, message, lastTransitionTime: previous.lastTransitionTime }
}
