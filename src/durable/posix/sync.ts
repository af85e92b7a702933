import * as fs from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import * as native from '../../../native/index.js'
import { isSystemError, toError } from '../../errors.js'
import type { Descriptor, Outcomes } from '../file-system.js'
import { sleep } from '../../deadline.js'
import { call } from './calls.js'

/** fsync(2), on a thread of the lane that asks. @internal */
export function fsync(descriptor: Descriptor): Promise<void> {
  return new Promise((resolve, reject) => {
    native.startInLane<undefined>(
      (done) => fs.fsync(descriptor, done),
      (error) => (error ? reject(error) : resolve()),
    )
  })
}

/** Contexts that no barrier uses now, kept for the next one: one barrier of each lane at a time may need one. */
const contexts: native.AioContext[] = []
/**
 * Whether threads make the barrier: the first one finds out whether the kernel refuses AIO. A worker thread makes no context: Node
 * terminates one without notice, and a context that it leaves behind counts towards the machine's fs.aio-max-nr until the process ends.
 */
let refused = !isMainThread
/** One barrier at a time in each lane, so that one which waits for a dead disk holds no other up; and one without a lane. */
const turns = new WeakMap<native.Lane, native.Semaphore>()
const turnWithoutLane = new native.Semaphore(1)

function turnOf(lane: native.Lane | undefined): native.Semaphore {
  if (lane === undefined) return turnWithoutLane
  const turn = turns.get(lane) ?? new native.Semaphore(1)
  turns.set(lane, turn)
  return turn
}

/**
 * fsync of every descriptor, all at once: one AIO submission, or threads where AIO is refused (ENOSYS, EPERM under a
 * seccomp profile, EAGAIN at fs.aio-max-nr). HOLDFAST_AIO=off chooses the threads.
 */
export async function syncAll(descriptors: readonly Descriptor[]): Promise<Outcomes> {
  if (descriptors.length === 0) return []
  if (refused || process.env['HOLDFAST_AIO'] === 'off') return syncOnThreads(descriptors)
  const turn = turnOf(native.Lane.current)
  await turn.acquire()
  let context: native.AioContext | undefined
  try {
    context = contexts.pop() ?? native.AioContext.create()
    return await retryInvalid(descriptors, await context.sync(descriptors))
  } catch (error) {
    if (!(error instanceof native.AioRefused)) return descriptors.map(() => toError(error))
    // A full table of contexts may empty; a kernel or profile that refuses stays as it is.
    refused = error.reason.code !== 'EAGAIN'
    return await syncOnThreads(descriptors)
  } finally {
    if (context?.broken === false) contexts.push(context)
    turn.leave()
  }
}

/** EINVAL from io_submit: no fsync by AIO for this file, or by this kernel (before 4.18). fsync itself shows which. */
async function retryInvalid(descriptors: readonly Descriptor[], outcomes: Outcomes): Promise<Outcomes> {
  return Promise.all(
    outcomes.map(async (outcome, index) => {
      const invalid = isSystemError(outcome) && outcome.syscall === 'io_submit' && outcome.code === 'EINVAL'
      if (!invalid) return outcome
      const [again] = await syncOnThreads([descriptors[index] ?? -1])
      return again
    }),
  )
}

/** The same on libuv's threads. @internal */
export async function syncOnThreads(descriptors: readonly Descriptor[]): Promise<Outcomes> {
  return outcomesOf(descriptors.map((descriptor) => fsync(descriptor)))
}

/**
 * The write-out hint for every file, and a wait for the last: later fsyncs then share one commit of the journal. Most disks have written
 * the others before it; on any other disk, the fsync waits for the rest, and reports its error.
 */
export async function startWriteOutAll(
  files: readonly Descriptor[],
  start: (file: Descriptor) => Promise<void> = (file) => native.startWriteOut(file, false),
): Promise<Outcomes> {
  const started = await outcomesOf(files.slice(0, -1).map(start))
  const ended = await outcomesOf(files.slice(-1).map((file) => native.startWriteOut(file, true)))
  return [...started, ...ended]
}

async function outcomesOf(calls: Promise<void>[]): Promise<Outcomes> {
  const outcomes = await Promise.allSettled(calls)
  return outcomes.map((outcome) => {
    if (outcome.status === 'fulfilled') return undefined
    const error = toError(outcome.reason)
    // A file system without write-out (ESPIPE, ENOSYS under seccomp) has refused the hint, not failed to write.
    const harmless = isSystemError(error) && error.syscall === 'sync_file_range' && hintless.has(error.code)
    return harmless ? undefined : error
  })
}

const hintless = new Set(['ENOSYS', 'ESPIPE', 'EPERM', 'EINVAL'])
/*
 * For a large barrier on ext4. Its journal writes the commit record a fraction of a millisecond after the first fsync came;
 * fsyncs that come later each issue a flush of their own, and the block layer merges at most as many as it has tags: 200
 * files cost 8 to 10 flushes, where 6 do (measured on a disk whose flush takes 10 ms, and with the kernel's jbd2
 * tracepoints; on a fast disk it costs a few more than it saves). So one directory is synced first, and while its commit is under way the staged files are touched, which
 * puts each into the next transaction: all the fsyncs then wait for that one commit. Only a hint: what makes anything
 * durable are the fsyncs that follow.
 */

/** statfs(2)'s f_type of ext2, ext3 and ext4. */
const ext4Magic = 0xef53
/** Up to here, late fsyncs share two flushes, and a leading commit would be one more. */
const largeBarrier = 128
/** Milliseconds in which the leading commit has surely started. */
const headStart = 1

/**
 * Runs the barrier behind a leading commit where that helps. `own` are files that this process has just written: only
 * those are touched, with the mode that they have.
 */
export async function behindLeadingCommit(
  descriptors: readonly Descriptor[],
  own: ReadonlySet<Descriptor>,
  barrier: () => Promise<Outcomes>,
): Promise<Outcomes> {
  // The first staged directory, so that there is something to commit.
  const first = descriptors.findIndex((descriptor) => !own.has(descriptor))
  const leader = descriptors[first]
  if (descriptors.length <= largeBarrier || leader === undefined || !(await isExt4(leader))) return barrier()
  const leading = fsync(leader).then(() => undefined, toError)
  await sleep(headStart)
  const staged = descriptors.filter((descriptor) => own.has(descriptor))
  await Promise.allSettled(staged.map(touch))
  const outcomes = await barrier()
  // The leading fsync reports the error once; a second fsync that succeeds does not undo it.
  outcomes[first] = (await leading) ?? outcomes[first]
  return outcomes
}

function touch(descriptor: Descriptor): Promise<void> {
  const { mode } = fs.fstatSync(descriptor)
  return call(
    () => `descriptor ${descriptor}`,
    (done) => fs.fchmod(descriptor, mode, done),
  )
}

async function isExt4(descriptor: Descriptor): Promise<boolean> {
  const path = `/proc/self/fd/${descriptor}`
  const { type } = await call<fs.StatsFs>(
    () => path,
    (done) => fs.statfs(path, done),
  )
  return type === ext4Magic
}
