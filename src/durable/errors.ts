import type { Reason } from '../reasons.js'

/** What Node's and native's errors have in common. */
export interface SystemFailure {
  code: string
  syscall: string
  path?: string
  message: string
}

/** Whether this is the failure of a system call (Node's fs or native's SystemError). */
export function isSystemFailure(error: unknown): error is SystemFailure & Error {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
}

/** The errno name of a failed system call; undefined for anything else. */
export function codeOf(error: unknown): string | undefined {
  return isSystemFailure(error) ? error.code : undefined
}

/** What was thrown, as an Error. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** The failure of a call, undefined when it succeeded. */
export async function failureOf(call: Promise<unknown>): Promise<Error | undefined> {
  try {
    await call
    return undefined
  } catch (error) {
    return toError(error)
  }
}

export interface FaultDetails {
  code: string
  syscall: string
  path: string
  published?: boolean
  reason?: Reason
  cause?: unknown
}

/**
 * A durable write did not go as asked. `published: false`: the target is what it was. `published: true`: the new content
 * is visible, but whether it survives a power cut is unknown.
 */
export class DurableWriteError extends Error {
  override readonly name = 'DurableWriteError'
  /** errno name: 'ENOSPC', 'EXDEV', 'EIO', … */
  readonly code: string
  readonly syscall: string
  readonly path: string
  readonly published: boolean
  /** What a condition, an event or an alert calls it. */
  readonly reason: Reason

  constructor(message: string, details: FaultDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = details.code
    this.syscall = details.syscall
    this.path = details.path
    this.published = details.published ?? false
    this.reason = details.reason ?? reasonOf(this.code, this.published)
  }
}

function reasonOf(code: string, published: boolean): Reason {
  if (published) return 'DurabilityUnknown'
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return 'NoSpace'
    case 'EXDEV':
    case 'ELOOP':
    case 'ENOTDIR':
    case 'EISDIR':
    case 'ENAMETOOLONG':
      return 'TargetUnfit'
    default:
      return 'PublishFailed'
  }
}

const advice: Record<string, string> = {
  ENOSPC: 'free space or inodes on this file system',
  EDQUOT: 'raise the quota or free space',
  EROFS: 'the file system is read-only: look into the kernel log for an error of the disk, or mount it read-write',
  EIO: 'the disk failed: look into the kernel log',
  EACCES: 'give this user the right to write here',
  EPERM: 'check for an immutable flag (lsattr), a missing capability (CHOWN, FOWNER) or a security module',
  EXDEV:
    'staging and target must be on one mount, btrfs subvolume and project quota: mount the parent of the target, not the target',
  ENOENT: 'the directory has gone meanwhile, or its file system takes no new files',
  EMFILE: 'raise the limit of open files (ulimit -n)',
  ENFILE: 'the system is out of file handles: raise fs.file-max',
  ELOOP: 'name the real path: no symbolic link may be part of it, except one that root owns in a directory of root',
  EBUSY: 'it is a mount point: choose a path below it, or mount its parent',
  ENAMETOOLONG: 'choose a shorter name',
}

/** Which right is missing depends on what was denied. */
function rightNeeded(target: string, { syscall }: SystemFailure, path: string): string | undefined {
  const within = path === target || path.startsWith(`${target}/`)
  if (within && ['open', 'openat2', 'read', 'scandir'].includes(syscall)) {
    return 'give this user the right to read what is there'
  }
  return advice.EACCES
}

/** The failure of a system call on the way to `target`, told with what was left behind and what to do. */
export function fault(target: string, error: unknown, published: boolean, doing: string): DurableWriteError {
  if (error instanceof DurableWriteError) return error
  if (!isSystemFailure(error)) throw error
  const path = error.path ?? target
  const state = published
    ? `${target} holds the new content, but it is not known to survive a power cut: the same call again publishes it anew`
    : `${target} is unchanged`
  const todo = error.code === 'EACCES' ? rightNeeded(target, error, path) : advice[error.code]
  const message = `${doing}: ${error.syscall} ${path}: ${error.code}; ${state}${todo ? `; ${todo}` : ''}`
  return new DurableWriteError(message, {
    code: error.code,
    syscall: error.syscall,
    path,
    published,
    cause: error,
  })
}

/** A target that cannot be published to as it is; nothing was touched. */
export function unfit(message: string, details: Omit<FaultDetails, 'published' | 'reason'>): DurableWriteError {
  return new DurableWriteError(message, { ...details, published: false, reason: 'TargetUnfit' })
}

/** A directory that somebody else made, and that is left alone. */
export function foreign(message: string, path: string, published = false): DurableWriteError {
  return new DurableWriteError(message, {
    code: 'EEXIST',
    syscall: 'renameat2',
    path,
    published,
    reason: 'TargetForeign',
  })
}
