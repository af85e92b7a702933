import { reasons, type Reason } from '../reasons.js'

/** What went wrong with a publication, as conditions and events name it. */
export interface Failure {
  readonly reason: Reason
  /** Trying again changes nothing: it needs somebody's hand, or a change of the configuration. */
  readonly terminal: boolean
}

/** Which of the reasons that a publication can fail for are terminal. */
const terminal = {
  DurabilityUnknown: false,
  TargetForeign: true,
  TargetUnfit: true,
  NoSpace: false,
  Busy: false,
  PublishFailed: false,
} as const satisfies Partial<Record<Reason, boolean>>

type FailureReason = keyof typeof terminal

/** The reason for whatever a publication threw: DurableWriteError, the failure of a system call, or anything else. */
export function reasonOf(error: unknown): Failure {
  const reason = reasonFor(error)
  return { reason, terminal: terminal[reason] }
}

function reasonFor(error: unknown): FailureReason {
  if (!(error instanceof Error)) return 'PublishFailed'
  const { code, syscall, published, reason } = error as Error &
    Partial<Record<'code' | 'syscall' | 'published' | 'reason', unknown>>
  // Said first: whoever holds the content visible must not be told that nothing happened.
  if (published === true) return reason === 'TargetForeign' ? reason : 'DurabilityUnknown'
  const given = reasons.find((known) => known === reason)
  if (given !== undefined && given in terminal) return given as FailureReason
  if (syscall === 'flock' && (code === 'EAGAIN' || code === 'EWOULDBLOCK' || code === 'ETIMEDOUT')) return 'Busy'
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
