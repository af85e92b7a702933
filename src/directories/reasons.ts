import { reasons, type Reason } from '../reasons.js'

/** What went wrong with a publication, as conditions and events name it, and what an operator can do about it. */
export interface Failure {
  readonly reason: Reason
  readonly advice: string
  /** Trying again changes nothing: it needs somebody's hand, or a change of the configuration. */
  readonly terminal: boolean
}

const failures = {
  DurabilityUnknown: {
    advice:
      'the new content is visible, but may be lost in a power cut: look into the kernel log for errors of the disk; it is published anew from fresh files',
    terminal: false,
  },
  TargetForeign: {
    advice:
      'the directory holds what holdfast did not publish: move it away, or set adopt: true for this directory',
    terminal: true,
  },
  TargetUnfit: {
    advice:
      'nothing can be exchanged here: name a directory that is no mount point and no symbolic link, with its parent on the same file system (ext4, xfs, btrfs)',
    terminal: true,
  },
  NoSpace: { advice: 'free space or inodes on the file system, or raise the quota', terminal: false },
  Busy: {
    advice: 'another process publishes here: it is tried again when that one is done',
    terminal: false,
  },
  PublishFailed: {
    advice: 'the target is what it was: the message names the call that failed',
    terminal: false,
  },
} as const satisfies Partial<Record<Reason, Omit<Failure, 'reason'>>>

type FailureReason = keyof typeof failures

/** Reason and advice for whatever a publication threw: DurableWriteError, the failure of a system call, or anything else. */
export function reasonOf(error: unknown): Failure {
  const reason = reasonFor(error)
  return { reason, ...failures[reason] }
}

function reasonFor(error: unknown): FailureReason {
  if (!(error instanceof Error)) return 'PublishFailed'
  const { code, syscall, published, reason } = error as Error &
    Partial<Record<'code' | 'syscall' | 'published' | 'reason', unknown>>
  // Said first: whoever holds the content visible must not be told that nothing happened.
  if (published === true) return reason === 'TargetForeign' ? reason : 'DurabilityUnknown'
  const given = reasons.find((known) => known === reason)
  if (given !== undefined && given in failures) return given as FailureReason
  if (syscall === 'flock' && (code === 'EAGAIN' || code === 'EWOULDBLOCK' || code === 'ETIMEDOUT'))
    return 'Busy'
  return byCode.get(code) ?? 'PublishFailed'
}

const byCode = new Map<unknown, FailureReason>([
  ['ENOSPC', 'NoSpace'],
  ['EDQUOT', 'NoSpace'],
  ['ENOTEMPTY', 'TargetForeign'],
  ['EXDEV', 'TargetUnfit'],
  ['ELOOP', 'TargetUnfit'],
  ['ENOTDIR', 'TargetUnfit'],
  ['EBUSY', 'TargetUnfit'],
  ['EROFS', 'TargetUnfit'],
  ['ENOTSUP', 'TargetUnfit'],
  ['EOPNOTSUPP', 'TargetUnfit'],
  ['ENOSYS', 'TargetUnfit'],
])
