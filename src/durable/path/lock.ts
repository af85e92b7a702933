import { dirname, join } from 'node:path'
import { clock } from '../../clock.js'
import { Deadline, pause, unlessAborted } from '../../deadline.js'
import { codeOf, isSystemError, messageOf } from '../../errors.js'
import { DurableWriteError, leftAsItWas, unfit, wrapError } from '../errors.js'
import type { Descriptor, FileSystem, LockHolder } from '../file-system.js'
import { checkTarget } from './target-path.js'
import { openParent, resolve } from './resolve.js'
import { Scope } from './scope.js'

/**
 * The calls that this copy of the program makes in this thread wait for one another in order. Then flock speaks for other processes, and for other
 * threads and copies of this one.
 */
const queues = new Map<string, Promise<void>>()

/** How often a lock that is held is tried again, in milliseconds. */
const pollInterval = 20

/** A holder that no look shows has let go between the try and the look, at so many in a row; or it is in a PID namespace beyond this one. */
const mostLooks = 8

export interface LockRequest {
  readonly parent: Descriptor
  readonly name: string
  /** The target's identity: device and inode of the parent, and the name in it. */
  readonly identity: string
  readonly target: string
  /** Milliseconds to wait for another holder. Undefined: 0 for another process, and no limit for calls of this one. */
  readonly timeout: number | undefined
  readonly signal: AbortSignal | undefined
  /**
   * The error's words while another descriptor holds the lock: the problem, and the state of the disk. Default: a publication of its target
   * runs.
   */
  readonly refusal?: (holder: LockHolder) => { readonly problem: string; readonly state: string }
}

/**
 * Takes the target's lock, which keeps every other publication and cleanup out. The file stays for ever: unlinked under a waiting process,
 * it would become two locks. Returns what releases the place in this process's queue; the flock ends with the descriptor.
 * @throws DurableWriteError: EAGAIN, reason Busy, when another holder has not let go in time or the signal aborts the wait
 */
export async function lock(scope: Scope, request: LockRequest): Promise<() => void> {
  const start = clock.now()
  const release = await enqueue(request)
  try {
    const deadline = start + (request.timeout ?? 0)
    while (!(await lockOnce(scope, request, deadline))) {
      // An unlink has freed the name of the locked file, so the next publisher would make another.
    }
    return release
  } catch (error) {
    release()
    throw error
  }
}

/** Opens and locks the file; false where it has lost its name meanwhile, so that its lock keeps no publisher out. */
async function lockOnce(scope: Scope, request: LockRequest, deadline: number): Promise<boolean> {
  const file = await scope.keep(open(scope, request))
  const { type, uid } = await scope.fs.attributes(file)
  if (type !== 'file' || (uid !== 0 && uid !== scope.fs.user.uid)) {
    throw unfit(`the lock ${pathOf(request)} is not a regular file of root or of this user`, {
      code: 'EPERM',
      syscall: 'fstat',
      path: request.target,
      advice: 'remove it: holdfast creates the lock itself',
    })
  }
  let looks = 0
  while (!scope.fs.tryLock(file)) {
    const left = deadline - clock.now()
    if (left > 0 && !request.signal?.aborted) await pause(Math.min(pollInterval, left))
    else looks = (await waitForOwn(scope.fs, file, request)) ? 0 : looks + 1
    if (looks === mostLooks) throw busy(request, 'another process')
  }
  if ((await scope.fs.attributes(file)).links > 0) return true
  await scope.close(file)
  return false
}

/** At the end of a wait, which has none for calls of this process unless the request says so; false where no holder is seen. */
async function waitForOwn(fs: FileSystem, file: Descriptor, request: LockRequest): Promise<boolean> {
  const holder = await fs.lockHolder(file)
  if (holder === undefined) return false
  if (holder === 'another process' || request.timeout !== undefined || request.signal?.aborted)
    throw busy(request, holder)
  await pause(pollInterval)
  return true
}

/** EACCES: the lock belongs to another user, or there is none, and this user may not make one here. */
async function open({ fs }: Scope, request: LockRequest): Promise<Descriptor> {
  const { parent, name, target } = request
  try {
    return await fs.openLock(parent, name)
  } catch (error) {
    if (codeOf(error) === 'ELOOP') {
      throw unfit(`the lock ${pathOf(request)} is a symbolic link`, {
        code: 'ELOOP',
        syscall: 'open',
        path: target,
        advice: 'remove the link: holdfast creates the lock as a regular file',
        cause: error,
      })
    }
    const owned = codeOf(error) === 'EACCES' && (await fs.look(parent, name).catch(() => undefined))
    if (!owned) throw error
    throw new DurableWriteError(`could not lock ${target}: ${messageOf(error)}`, {
      code: 'EACCES',
      syscall: 'open',
      path: target,
      state: leftAsItWas(target),
      advice: `the lock file belongs to user ${owned.uid}: run as that user, or remove the file while nobody publishes here`,
      cause: error,
    })
  }
}

function pathOf({ target, name }: LockRequest): string {
  return join(dirname(target), name)
}

function busy({ target, refusal }: LockRequest, holder: LockHolder): DurableWriteError {
  const { problem, state } = refusal?.(holder) ?? {
    problem: `${holder} is publishing ${target} and holds its lock`,
    state: 'nothing was changed',
  }
  const advice = 'try again when the lock is free'
  return new DurableWriteError(problem, {
    code: 'EAGAIN',
    syscall: 'flock',
    path: target,
    reason: 'Busy',
    state,
    advice,
  })
}

/** Waits for the calls of this process that came before, no longer than the request says. */
async function enqueue(request: LockRequest): Promise<() => void> {
  const { identity, timeout, signal } = request
  const before = queues.get(identity)
  const { promise: turn, resolve: release } = withResolvers()
  // A caller that gives up its place keeps the order of those behind it.
  const last = (before ?? Promise.resolve()).then(() => turn)
  queues.set(identity, last)
  void last.then(() => {
    if (queues.get(identity) === last) queues.delete(identity)
  })
  if (before === undefined) return release
  const limit = new Deadline(timeout ?? Infinity, signal)
  try {
    await unlessAborted(before, limit.signal)
    return release
  } catch {
    release()
    throw busy(request, 'another call of this process')
  } finally {
    limit.dispose()
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

export interface HeldLock {
  release(): Promise<void>
}

/**
 * Takes an advisory lock (flock) on a file, which is created, 0600, where it is missing, and stays. Waits up to `timeout` milliseconds for
 * another holder, in this process or another. It ends with `release`, or with this process. `state`: the state of the disk before the lock,
 * for the message.
 * @throws DurableWriteError, with reason Busy where another holds it
 */
export async function lockFile(
  fs: FileSystem,
  path: string,
  timeout: number,
  signal: AbortSignal | undefined,
  state: string,
): Promise<HeldLock> {
  const scope = new Scope(fs)
  try {
    const place = await resolve(scope, checkTarget(path))
    const parent = await openParent(scope, place)
    const { device, inode } = parent.attributes
    const leave = await lock(scope, {
      parent: parent.directory,
      name: place.name,
      identity: `${device}:${inode}:lock ${place.name}`,
      target: path,
      timeout,
      signal,
      refusal: (holder) => ({ problem: `${holder} holds the lock ${path}`, state }),
    })
    return {
      release: async () => {
        await scope.closeAll()
        leave()
      },
    }
  } catch (error) {
    await scope.closeAll()
    throw lockError(path, error, state)
  }
}

function lockError(path: string, error: unknown, state: string): unknown {
  if (!isSystemError(error)) return error
  if (error.code !== 'EISDIR') return wrapError(path, error, false, `could not lock ${path}`)
  const { code, syscall } = error
  return new DurableWriteError(`the lock ${path} is a directory`, {
    code,
    syscall,
    path,
    state,
    advice: 'name a regular file, or a path that does not exist yet',
    cause: error,
  })
}
