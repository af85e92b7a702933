import { existsSync } from 'node:fs'
import { errnoName } from '../native/errno.js'
import { reasons, type Reason } from './reasons.js'

/*
 * What every room knows of an error: its errno, its sentence, and what an errno means for a publication. How each kind of error is
 * made stays with the room that throws it.
 */

/** What the errors of Node's fs and of native/ have in common. */
export interface SystemError {
  /** errno name: 'ENOSPC', 'EIO', … */
  code: string
  syscall: string
  path?: string
}

/** Knows an Error of another realm, too: jest runs the library in a realm beside Node's, whose fs throws. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]'
}

/** Whether a system call failed (Node's fs, or native's SystemError). */
export function isSystemError(error: unknown): error is SystemError & Error {
  return isError(error) && 'code' in error && typeof error.code === 'string'
}

/**
 * The errno name of a failed system call, or Node's code of another failure; undefined for anything else. Where libuv has no name for
 * an errno (EDQUOT, EUCLEAN and some more), Node's code is 'Unknown system error -122' from a call on a thread, and 'UNKNOWN' from one
 * that was made at once.
 */
export function codeOf(error: unknown): string | undefined {
  if (!isSystemError(error)) return undefined
  const { code, errno } = error as NodeJS.ErrnoException & { code: string }
  return /^unknown/i.test(code) && errno !== undefined ? errnoName(Math.abs(errno)) : code
}

/** The sentence of any thrown value. */
export function messageOf(thrown: unknown): string {
  return isError(thrown) ? thrown.message : String(thrown)
}

/** Any thrown value, as an Error. */
export function toError(thrown: unknown): Error {
  return isError(thrown) ? thrown : new Error(String(thrown))
}

/** The error that a call rejects with; undefined where it succeeds. */
export async function failureOf(call: Promise<unknown>): Promise<Error | undefined> {
  try {
    await call
    return undefined
  } catch (error) {
    return toError(error)
  }
}

/** The reasons of a failed publication, and whether one is terminal: a retry changes nothing, a person has to act. */
const terminal = {
  DurabilityUnknown: false,
  TargetForeign: true,
  TargetUnfit: true,
  Held: true,
  RolledBack: true,
  InUse: false,
  AdoptionPending: false,
  AdoptionRefused: true,
  ContentRejected: true,
  NoSpace: false,
  Busy: false,
  AccessDenied: false,
  PublishFailed: false,
} as const satisfies Partial<Record<Reason, boolean>>

export type FailureReason = keyof typeof terminal

interface ErrnoRule {
  readonly reason: FailureReason
  /** What to do, where the call was to write. */
  readonly advice?: string
  /** What to do, where the call was to read. */
  readonly adviceToRead?: string
}

/** A person's mount is more often the cause than a disk that fails. */
export const mountReadWrite = 'mount it read-write; where nobody mounted it so, check the kernel log for a disk error'

/**
 * The meaning of each errno. Terminal are those that the target or its file system answers each time. The agent retries a failure that can
 * end without a change of the configuration (a full disk, a read-only mount).
 *
 * @internal docs/reasons.md shows this table.
 */
export const byErrno: Readonly<Record<string, ErrnoRule>> = {
  ENOSPC: { reason: 'NoSpace', advice: 'free up space or inodes on this file system' },
  EDQUOT: { reason: 'NoSpace', advice: 'raise the quota, or free up space' },
  ENOKEY: { reason: 'PublishFailed', advice: 'the directory is encrypted, and locked: add its key (fscrypt unlock)' },
  EFBIG: { reason: 'PublishFailed', advice: 'raise the limit of file sizes (ulimit -f), or publish smaller files' },
  ENOMEM: {
    reason: 'PublishFailed',
    advice: 'the system is out of memory: free some, or raise the limit of the container',
  },
  EUCLEAN: {
    reason: 'PublishFailed',
    advice: 'the file system is damaged: check the kernel log, then unmount it and run fsck',
  },
  EROFS: {
    reason: 'PublishFailed',
    advice: `the file system is read-only: ${mountReadWrite}`,
  },
  EIO: { reason: 'PublishFailed', advice: 'the disk failed: check the kernel log' },
  EACCES: {
    reason: 'PublishFailed',
    advice: 'run as a user who may write here, or grant CAP_DAC_OVERRIDE',
    adviceToRead: 'run as a user who may read what is there, or grant CAP_DAC_OVERRIDE',
  },
  EPERM: {
    reason: 'PublishFailed',
    advice: 'check for an immutable flag (lsattr), a missing capability (CAP_CHOWN, CAP_FOWNER) or a security module',
  },
  ENOENT: {
    reason: 'PublishFailed',
    advice: 'the directory was removed meanwhile, or its file system takes no new files',
  },
  EMFILE: { reason: 'PublishFailed', advice: 'raise the limit of open files (ulimit -n)' },
  ENFILE: { reason: 'PublishFailed', advice: 'the system is out of file handles: raise fs.file-max' },
  EXDEV: {
    reason: 'TargetUnfit',
    advice:
      'the target, all that is below it and its parent must be on one mount, btrfs subvolume and project quota: mount the parent, not the target itself',
  },
  ELOOP: {
    reason: 'TargetUnfit',
    advice: 'name the real path: holdfast follows a symbolic link only where root owns both the link and its directory',
  },
  EBUSY: {
    reason: 'TargetUnfit',
    advice: 'something is mounted there: name a path below it, or mount the parent directory instead',
  },
  ENAMETOOLONG: { reason: 'TargetUnfit', advice: 'choose a shorter name' },
  ENOTDIR: { reason: 'TargetUnfit', advice: 'name a path in which each part above the last is a directory' },
  EISDIR: { reason: 'TargetUnfit', advice: 'move the directory of this name away, or choose another name' },
  ENOTEMPTY: { reason: 'TargetForeign', advice: 'another program writes there: stop it, or move its files away' },
  ENOTSUP: { reason: 'TargetUnfit', advice: 'put the target on ext4, xfs or btrfs' },
  EOPNOTSUPP: { reason: 'TargetUnfit', advice: 'put the target on ext4, xfs or btrfs' },
  ENOSYS: {
    reason: 'TargetUnfit',
    advice: 'allow this system call in the seccomp profile, or run a kernel that has it',
  },
}

function ruleOf(code: string | undefined): ErrnoRule | undefined {
  return code !== undefined && Object.hasOwn(byErrno, code) ? byErrno[code] : undefined
}

/** The advice for a system call that failed with this errno; undefined without one. */
export function adviceFor(code: string, access: 'read' | 'write' = 'write'): string | undefined {
  const rule = ruleOf(code)
  return access === 'read' ? (rule?.adviceToRead ?? rule?.advice) : rule?.advice
}

/** The advice for a call that failed because /proc is not mounted: those relative to a directory lead through /proc/self/fd. */
export function adviceWithoutProc(code: unknown): string | undefined {
  if (code !== 'ENOENT' || existsSync('/proc/self/fd')) return undefined
  return '/proc is not mounted here: in this chroot or container, run mount -t proc proc /proc first'
}

const noDescriptor: readonly string[] = ['EMFILE', 'ENFILE']

/** Errors of any call: the process, or the system, has nothing left to make it with. */
const shortages: readonly string[] = [...noDescriptor, 'ENOMEM']

/** Nothing was opened, and so nothing was written or synced either. */
export function isOutOfDescriptors(code: string | undefined): boolean {
  return code !== undefined && noDescriptor.includes(code)
}

/** What to do where something has run short; undefined for all other codes, whose advice depends on what the call was for. */
export function adviceOnShortage(code: string | undefined): string | undefined {
  return code !== undefined && shortages.includes(code) ? adviceFor(code) : undefined
}

/** A code for a message that says in its own words what failed. */
export function describeCode(code: string): string {
  const advice = adviceOnShortage(code)
  return advice === undefined ? code : `${code}; ${advice}`
}

/** The reason of a publication that failed with this errno, before anything was visible. */
export function reasonForErrno(code: string | undefined): FailureReason {
  return ruleOf(code)?.reason ?? 'PublishFailed'
}

/** What went wrong with a publication, as conditions and events name it. */
export interface Failure {
  readonly reason: FailureReason
  /** A retry changes nothing: a person has to act, or to change the configuration. */
  readonly terminal: boolean
}

/** The failure behind any value that a publication threw: DurableWriteError, the error of a system call, or any other. */
export function failureFrom(error: unknown): Failure {
  const reason = reasonFrom(error)
  return { reason, terminal: terminal[reason] }
}

function reasonFrom(error: unknown): FailureReason {
  if (!isError(error)) return 'PublishFailed'
  const { syscall, published, reason } = error as Error & Partial<Record<'syscall' | 'published' | 'reason', unknown>>
  // First of all: a caller whose content is visible must not read that nothing happened.
  if (published === true) return reason === 'TargetForeign' ? reason : 'DurabilityUnknown'
  const given = reasons.find((known) => known === reason)
  if (given !== undefined && given in terminal) return given as FailureReason
  const code = codeOf(error)
  if (syscall === 'flock' && (code === 'EAGAIN' || code === 'EWOULDBLOCK' || code === 'ETIMEDOUT')) return 'Busy'
  return reasonForErrno(code)
}

/**
 * Declared by the errors of a caller's input: it is wrong on any node, and nothing has begun. A field, so that no room loads another in
 * order to know its errors.
 */
export interface DeclaredInvalid {
  readonly invalid: 'argument' | 'configuration'
}

/** Which input is wrong; undefined for any other error. */
export function invalidInputOf(error: unknown): DeclaredInvalid['invalid'] | undefined {
  if (!isError(error) || !('invalid' in error)) return undefined
  return error.invalid === 'argument' || error.invalid === 'configuration' ? error.invalid : undefined
}

/** Whether a failed publication threw it: with DurableWriteError's `published` and `reason`. */
export function isPublicationError(error: unknown): error is Error & { published: boolean; reason: string } {
  if (!isError(error) || !('published' in error) || !('reason' in error)) return false
  return typeof error.published === 'boolean' && typeof error.reason === 'string'
}
