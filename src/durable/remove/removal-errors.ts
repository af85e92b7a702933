import { dirname, join } from 'node:path'
import { adviceFor, isSystemError, messageOf } from '../../errors.js'
import { listed } from '../../message-text.js'
import { aborted, DurableWriteError, foreign, unfit } from '../errors.js'
import { isDataDirectory, nextDataLink } from '../path/index.js'
import type { StoredRecord } from '../record/index.js'
import { refuseHeld, rolledBack } from '../target/index.js'
import type { Publication } from '../types.js'

/* Targets that holdfast does not take away, each with its error: see removal.ts. */

/** A process uses it, or may do so. */
export function inUse(path: string, user: string): DurableWriteError {
  return new DurableWriteError(`${path} is in use: ${user}`, {
    code: 'EBUSY',
    syscall: 'none',
    path,
    reason: 'InUse',
    state: 'nothing was changed',
    advice: 'end it, or have it close what it has open, and try again',
  })
}

/** It differs, or may differ, from its published content. */
export function changed(path: string, problem: string): DurableWriteError {
  const details = { state: 'nothing was changed', advice: `see what it holds; to remove it all the same, use --force` }
  return foreign(`${path} is not what holdfast published: ${problem}`, path, details)
}

/** Passes only a target that certainly equals its published content. */
export function refuseChanged(
  path: string,
  { kind }: StoredRecord,
  { differences }: Publication,
  isOwn: boolean,
): void {
  // What an interrupted publication has left in the symlink form.
  const isLeftover = (name: string): boolean => kind === 'symlink' && (isDataDirectory(name) || name === nextDataLink)
  const others = differences.filter((found) => found.problem !== 'unexpected' || !isLeftover(found.path))
  const paths = others.map((difference) => `${difference.path} (${difference.problem})`)
  if (paths.length > 0) throw changed(path, listed(paths, 3))
  if (!isOwn) throw changed(path, 'its record is of another one, as after a copy or a restored backup')
}

/** An operator has said that it stays as it is. */
export function refuseKept(path: string, { hold, pin }: Pick<Publication, 'hold' | 'pin'>): void {
  refuseHeld(path, hold)
  if (pin) throw rolledBack(path, pin, `run "holdfast release ${path}" first; remove also takes --release`)
}

/** Revisions share their lock and staging names: see `family`. */
export function refuseRevision(path: string, { publisher }: StoredRecord): void {
  if (publisher === undefined || publisher === 'agent') return
  throw unfit(`holdfast ${publisher} published ${path}`, {
    code: 'EPERM',
    syscall: 'none',
    path,
    advice: publisher === 'install' ? 'use "holdfast prune"' : 'roll it out without it',
  })
}

/** The caller has thought better of it. */
export function removalAborted(path: string, signal: AbortSignal | undefined): DurableWriteError {
  return aborted(`the caller aborted the removal of ${path}`, {
    syscall: 'rename',
    path,
    state: 'nothing was changed',
    signal,
  })
}

/** It was to go back to its place, which another program has taken meanwhile. */
export function placeTaken(path: string, staging: string): DurableWriteError {
  const kept = join(dirname(path), staging)
  return foreign(`somebody made ${path} meanwhile`, path, {
    published: true,
    state: `what was there before is ${kept}`,
    advice: 'move one of them away',
  })
}

/** A predecessor has taken part of it away already, and a process uses the rest. */
export function stillInUse(path: string, failure: Error): Error {
  if (!(failure instanceof DurableWriteError) || failure.reason !== 'InUse') return failure
  return unfinished(path, failure.problem, failure.code, failure, 'end it, or have it close what it has open')
}

/** These names beside it could not be removed, the first of them for this. */
export function notAllGone(path: string, left: readonly string[], first: unknown): DurableWriteError {
  const problem = `could not remove ${listed(left, 3)} beside ${path}`
  if (!isSystemError(first)) return unfinished(path, `${problem}: ${messageOf(first)}`, 'ENOTEMPTY')
  const { code, syscall, path: where } = first
  const why = where === undefined ? messageOf(first) : `${syscall} ${where}: ${code}`
  return unfinished(path, `${problem}: ${why}`, code, first, code === 'EBUSY' ? 'unmount it' : adviceFor(code))
}

/** It has left its place, and does not come back. `advice`: what comes before another call. */
export function unfinished(
  path: string,
  problem: string,
  code: string,
  cause?: unknown,
  advice = adviceFor(code),
): DurableWriteError {
  const syscall = isSystemError(cause) ? cause.syscall : 'unlinkat'
  return new DurableWriteError(problem, {
    code,
    syscall,
    path,
    published: true,
    cause,
    ...(cause instanceof DurableWriteError && { reason: cause.reason }),
    state: `${path} has left its place; its record stays until all of it is known to be removed`,
    advice: [advice, 'then repeat the call: it goes on'].filter(Boolean).join('; '),
  })
}
