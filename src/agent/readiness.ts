/** What readiness needs to know of a directory. */
export interface ReadinessFacts {
  readonly path: string
  /** It holds at least one object that is not optional. */
  readonly required: boolean
  /** The disk holds what its record says, durably: published now or before a restart. */
  readonly intact: boolean
  /** Why it is not intact. Never holds content. */
  readonly reason: string
  readonly message: string
}

export interface Readiness {
  readonly ready: boolean
  /** One line for each directory that counts, in Kubernetes' own form: `[+]PATH ok`, `[-]PATH Reason: message`. */
  readonly lines: readonly string[]
}

/**
 * Ready is who has every required directory intact on the disk. Whether the source can be reached does not matter, and neither does
 * a hook: what is intact on the disk can be used.
 */
export function readiness(directories: Iterable<ReadinessFacts>): Readiness {
  const counting = [...directories].filter(({ required }) => required)
  return {
    ready: counting.every(({ intact }) => intact),
    lines: counting.map(({ path, intact, reason, message }) =>
      intact ? `[+]${path} ok` : `[-]${path} ${reason}: ${message}`,
    ),
  }
}
