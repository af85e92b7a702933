/** What readiness needs to know of a directory. */
export interface ReadinessFacts {
  readonly path: string
  /** It holds at least one object that is not optional. */
  readonly required: boolean
  /** The disk holds what its record says, durably: published now or before a restart. */
  readonly whole: boolean
  /** Why it is not whole. Never holds content. */
  readonly reason: string
  readonly message: string
}

export interface Readiness {
  readonly ready: boolean
  /** One line for each directory that counts, in Kubernetes' own form: `[+]PATH ok`, `[-]PATH Reason: message`. */
  readonly lines: readonly string[]
}

/**
 * Ready is who has every required directory whole on the disk. Whether the source can be reached does not matter, and neither does
 * a hook: what is whole on the disk can be used.
 */
export function readiness(directories: Iterable<ReadinessFacts>): Readiness {
  const counting = [...directories].filter(({ required }) => required)
  return {
    ready: counting.every(({ whole }) => whole),
    lines: counting.map(({ path, whole, reason, message }) =>
      whole ? `[+]${path} ok` : `[-]${path} ${reason}: ${message}`,
    ),
  }
}
