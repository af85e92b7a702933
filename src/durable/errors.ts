import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { adviceWithoutProc, adviceFor, isSystemError, reasonForErrno, toError, type SystemError } from '../errors.js'
import { effectiveCapabilities } from '../capabilities.js'
import type { Reason } from '../reasons.js'
import type { Mount } from './file-system.js'
import { mountAbove, rootMount } from '../mountinfo.js'

export interface ErrorDetails {
  readonly code: string
  readonly syscall: string
  readonly path: string
  readonly published?: boolean | undefined
  readonly reason?: Reason | undefined
  /** The state that the failure leaves behind, as a sentence without its full stop. */
  readonly state?: string | undefined
  /** What to do, in the same form. */
  readonly advice?: string | undefined
  readonly cause?: unknown
}

/** Node's code for a call that a signal ended. */
const abortCode = 'ABORT_ERR'

/** The caller's signal ended a call that had changed nothing. The cause is the signal's reason. */
export function aborted(
  problem: string,
  {
    signal,
    ...details
  }: Pick<ErrorDetails, 'syscall' | 'path' | 'state'> & { readonly signal: AbortSignal | undefined },
): DurableWriteError {
  return new DurableWriteError(problem, { ...details, code: abortCode, cause: signal?.reason })
}

export function isAborted(error: unknown): boolean {
  return error instanceof DurableWriteError && error.code === abortCode
}

/**
 * A durable write failed. `published: false`: the target is unchanged. `published: true`: the new content is visible, but whether it
 * survives a power cut is unknown.
 */
export class DurableWriteError extends Error {
  /** `AbortError` where the caller's signal ended the call. */
  override readonly name: string
  /** What failed; `message` adds the state and the advice. */
  readonly problem: string
  /** errno name: 'ENOSPC', 'EXDEV', 'EIO', …; ABORT_ERR, as Node's own, where the caller's signal ended the call. */
  readonly code: string
  /** The system call that failed, or would have been next. */
  readonly syscall: string
  /** Where it failed. */
  readonly path: string
  /** Whether the new content is visible; whether it survives a power cut is then unknown. */
  readonly published: boolean
  /** What a condition, an event or an alert calls it. */
  readonly reason: Reason
  /** The state that the failure leaves; undefined where `problem` says it. */
  readonly state: string | undefined
  /** undefined where holdfast knows no remedy. */
  readonly advice: string | undefined

  constructor(problem: string, details: ErrorDetails) {
    const { state, advice, cause } = details
    const message = [problem, state, advice].filter((part) => part !== undefined).join('; ')
    super(message, cause === undefined ? undefined : { cause })
    this.problem = problem
    this.code = details.code
    this.name = this.code === abortCode ? 'AbortError' : 'DurableWriteError'
    this.syscall = details.syscall
    this.path = details.path
    this.published = details.published ?? false
    this.reason = details.reason ?? (this.published ? 'DurabilityUnknown' : reasonForErrno(this.code))
    this.state = state
    this.advice = advice
  }
}

/**
 * What to do in a container whose pod has no volume for this target: the container's own root holds it, and goes with the container.
 * undefined on a mount of the node, and outside of containers. `volume`: what to mount; the parent, since an exchange crosses no mount.
 */
export function forgottenVolume(
  target: string,
  volume = dirname(target),
  root: Pick<Mount, 'id' | 'type'> | undefined = rootMount(),
  mount: Pick<Mount, 'id'> | undefined = mountAbove(target),
): string | undefined {
  if (root?.type !== 'overlay' || mount?.id !== root.id) return undefined
  return `no mount of the node is there: add a hostPath volume for ${volume}`
}

/** What to do about a system call on the way to a target that failed with this errno; undefined where nothing is known. */
export function adviceAt(target: string, code: string, access?: 'read' | 'write'): string | undefined {
  return (
    adviceWithoutProc(code) ??
    umaskAdvice(code) ??
    moduleAdvice(code) ??
    (code === 'EROFS' ? forgottenVolume(target) : undefined) ??
    adviceFor(code, access)
  )
}

/** The errno does not say which right is missing; the denied call and its path do. */
function accessOf(target: string, { syscall }: SystemError, path: string): 'read' | 'write' {
  const within = path === target || path.startsWith(`${target}/`)
  return within && ['open', 'openat2', 'read', 'scandir'].includes(syscall) ? 'read' : 'write'
}

/**
 * Under a umask such as 0700 the kernel denies this process what it has just made. Node's own `process.umask()` sets the umask while it
 * reads it, for all threads; without /proc nothing is known.
 */
function umaskAdvice(code: string): string | undefined {
  if (code !== 'EACCES') return undefined
  try {
    const umask = /^Umask:\s*([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
    if (umask === undefined || (Number.parseInt(umask, 8) & 0o700) === 0) return undefined
    return `the umask ${umask} takes permissions from the owner of each new file: set it to 0077 or less`
  } catch {
    return undefined
  }
}

/** The advice where this process passes by all modes; without /proc nothing is known. */
function moduleAdvice(code: string): string | undefined {
  try {
    if (code !== 'EACCES' || !effectiveCapabilities()('CAP_DAC_OVERRIDE')) return undefined
  } catch {
    return undefined
  }
  return 'no mode denies this process anything (CAP_DAC_OVERRIDE): a security module does, or the server of a network file system; look for it with "ausearch -m AVC -ts recent" (SELinux) or "journalctl -k --grep apparmor"'
}

/**
 * The failure of a system call on the way to `target`, with the state that it leaves and the advice for its errno. `changed`: that state,
 * where readers see a change. Throws any other error as it is.
 */
export function wrapError(
  target: string,
  error: unknown,
  published: boolean,
  doing: string,
  changed = `${target} holds the new content, but it is not known to survive a power cut: repeat the call to publish it again from new files`,
): DurableWriteError {
  return callError(target, error, doing, (failed, path) => ({
    published,
    state: published ? changed : leftAsItWas(target),
    advice: adviceAt(target, failed.code, accessOf(target, failed, path)),
  }))
}

/** What a call answers. @throws its failure, as `wrapError` has it */
export async function wrapped<T>(target: string, doing: string, call: Promise<T>, published = false): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw wrapError(target, error, published, doing)
  }
}

/**
 * The failure of a system call of a look at a target, which was to change nothing. AccessDenied where this user may not look: a denial never
 * counts as absence. Throws any other error as it is.
 */
export function readError(target: string, error: unknown, doing = `could not read ${target}`): DurableWriteError {
  return callError(target, error, doing, ({ code }) => ({
    ...((code === 'EACCES' || code === 'EPERM') && { reason: 'AccessDenied' }),
    state: leftAsItWas(target),
    advice: adviceAt(target, code, 'read'),
  }))
}

function callError(
  target: string,
  error: unknown,
  doing: string,
  more: (failed: SystemError, path: string) => Omit<ErrorDetails, 'code' | 'syscall' | 'path' | 'cause'>,
): DurableWriteError {
  if (error instanceof DurableWriteError) return error
  if (!isSystemError(error)) throw error
  const { code, syscall, path = target } = error
  const details = { ...more(error, path), code, syscall, path, cause: error }
  return new DurableWriteError(`${doing}: ${syscall} ${path}: ${code}`, details)
}

/** The state after a failure that changed nothing, whether there was a target or not. */
export function leftAsItWas(target: string): string {
  return `holdfast left ${target} as it was`
}

/** Two targets of one batch are one directory, or one lies in the other: nothing was written for any of the batch. */
export class OverlappingTargets extends TypeError {
  /** As they were asked for. */
  constructor(readonly paths: readonly [string, string]) {
    super(`${paths[0]} and ${paths[1]} are the same target, or one lies in the other`)
  }
}

/** A defect of this program, on the way to `path`. */
export function internalError(path: string, defect: unknown, published: boolean, doing: string): DurableWriteError {
  return new DurableWriteError(`${doing} ${path}: an internal error of holdfast: ${toError(defect).message}`, {
    code: 'ENOTRECOVERABLE',
    syscall: 'none',
    path,
    published,
    cause: defect,
  })
}

/** A target that cannot be published to as it is; nothing was touched, and `state` says so. */
export function unfit(problem: string, details: Omit<ErrorDetails, 'published' | 'reason'>): DurableWriteError {
  return new DurableWriteError(problem, {
    state: 'nothing was changed',
    ...details,
    published: false,
    reason: 'TargetUnfit',
  })
}

/** A directory of another program, which holdfast leaves alone. */
export function foreign(
  problem: string,
  path: string,
  details: Pick<ErrorDetails, 'published' | 'state' | 'advice'> = {},
): DurableWriteError {
  return new DurableWriteError(problem, {
    code: 'EEXIST',
    syscall: 'renameat2',
    path,
    reason: 'TargetForeign',
    ...details,
  })
}

/** The same error with further facts about the disk, and their consequences: sentences without their full stops. */
export function extendError(error: DurableWriteError, more: readonly string[]): DurableWriteError {
  if (more.length === 0) return error
  const { problem, code, syscall, path, published, reason, state, advice, cause } = error
  const last = more.join('; ')
  const parts =
    advice === undefined
      ? { state: [state, last].filter((part) => part !== undefined).join('; ') }
      : { state, advice: `${advice}; ${last}` }
  return new DurableWriteError(problem, { code, syscall, path, published, reason, cause, ...parts })
}
