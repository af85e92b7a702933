import { dirname, join } from 'node:path'
import { clock } from '../../clock.js'
import { Deadline, sleep, unlessAborted } from '../../deadline.js'
import { codeOf, messageOf } from '../../errors.js'
import { DurableWriteError, leftAsItWas, unfit, wrapError } from '../errors.js'
import type { Attributes, Descriptor, EntryType, FileSystem, LockHolder } from '../file-system.js'
import { openOwn, type OpenedOwn, Scope } from './scope.js'
import { checkTarget } from './names.js'
import { placeKey } from './place.js'
import { openParent, type Parent, resolve } from './resolve.js'

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
  readonly parent: Parent
  readonly name: string
  readonly target: string
  /** Milliseconds to wait for another holder. Undefined: 0 for another process, and no limit for calls of this one. */
  readonly timeout: number | undefined
  readonly signal: AbortSignal | undefined
  /** Of a lock that the user names: the state of the disk before it, for messages. Default: the lock of a target. */
  readonly state?: string
}

/**
 * Takes the target's lock, which keeps every other publication and cleanup out. The file stays for ever: unlinked under a waiting process,
 * it would become two locks. It ends with the scope.
 * @throws DurableWriteError: EAGAIN, reason Busy, when another holder has not let go in time or the signal aborts the wait
 */
export async function lock(scope: Scope, request: LockRequest): Promise<void> {
  const start = clock.now()
  const release = await enqueue(request)
  try {
    const deadline = start + (request.timeout ?? 0)
    while (!(await lockOnce(scope, request, deadline))) {
      // An unlink has freed the name of the locked file, so the next publisher would make another.
    }
    // The scope runs this last: a waiter in this process would find the flock still held.
    scope.atEnd(release)
  } catch (error) {
    release()
    throw error
  }
}

/** Opens and locks the file; false where it has lost its name meanwhile, so that its lock keeps no publisher out. */
async function lockOnce(scope: Scope, request: LockRequest, deadline: number): Promise<boolean> {
  const { file, attributes } = await open(scope, request)
  if (file === undefined) throw notOurs(scope.fs, request, attributes)
  let looks = 0
  while (!scope.fs.tryLock(file)) {
    const left = deadline - clock.now()
    if (left > 0 && !request.signal?.aborted) await sleep(Math.min(pollInterval, left))
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
  await sleep(pollInterval)
  return true
}

/** EACCES: the lock is root's, or there is none, and this user may not make one here. */
async function open(scope: Scope, { parent, name, target }: LockRequest): Promise<OpenedOwn> {
  try {
    return await openOwn(scope, 'openLock', parent.directory, name)
  } catch (error) {
    const owned = codeOf(error) === 'EACCES' && (await scope.fs.look(parent.directory, name).catch(() => undefined))
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

/** Of another user's file nobody knows who holds its lock. */
function notOurs(fs: FileSystem, request: LockRequest, { type, uid }: Attributes): DurableWriteError {
  const { target, state } = request
  const details = { syscall: 'open', path: target, ...(state !== undefined && { state }) }
  const lock = `the lock ${pathOf(request)} is`
  if (uid !== 0 && uid !== fs.user.uid) {
    const example = state === undefined ? '' : ', such as /run/holdfast/locks'
    return unfit(`${lock} not a regular file of root or of this user, but of user ${uid}`, {
      ...details,
      code: 'EPERM',
      advice: `${removeIt}; other users may make it again there: use a directory where only root may make files${example}`,
    })
  }
  const { what, code } = others[type] ?? { what: 'not a regular file', code: 'EPERM' }
  const advice = state === undefined ? removeIt : 'name a regular file, or a path that does not exist yet'
  return unfit(`${lock} ${what}`, { ...details, code, advice })
}

const removeIt = 'remove it: holdfast creates the lock itself'

const others: Partial<Record<EntryType, { readonly what: string; readonly code: string }>> = {
  symlink: { what: 'a symbolic link', code: 'ELOOP' },
  directory: { what: 'a directory', code: 'EISDIR' },
}

function pathOf({ target, name }: LockRequest): string {
  return join(dirname(target), name)
}

function busy({ target, state }: LockRequest, holder: LockHolder): DurableWriteError {
  const problem =
    state === undefined ? `${holder} is publishing ${target} and holds its lock` : `${holder} holds the lock ${target}`
  const advice = 'try again when the lock is free'
  return new DurableWriteError(problem, {
    code: 'EAGAIN',
    syscall: 'flock',
    path: target,
    reason: 'Busy',
    state: state ?? 'nothing was changed',
    advice,
  })
}

/** Waits for the calls of this process that came before, no longer than the request says. */
async function enqueue(request: LockRequest): Promise<() => void> {
  const { parent, name, timeout, signal } = request
  const identity = placeKey(parent.attributes, name)
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
    await lock(scope, { parent, name: place.name, target: path, timeout, signal, state })
    return { release: () => scope.closeAll() }
  } catch (error) {
    await scope.closeAll()
    throw wrapError(path, error, false, `could not lock ${path}`)
  }
}
