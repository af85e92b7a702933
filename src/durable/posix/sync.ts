import * as fs from 'node:fs'
import { promisify } from 'node:util'
import * as native from '../../../native/index.js'
import { isSystemError, toError } from '../../errors.js'
import type { Descriptor, Outcomes } from '../file-system.js'

const fsync = promisify(fs.fsync)

/** What the barrier is made with in this process: found out at the first one. */
let context: native.AioContext | undefined
let refused = false
/** One barrier at a time uses the context. */
const turn = new native.Semaphore(1)

/**
 * fsync of every descriptor, all at once: one AIO submission, or threads where AIO is refused (ENOSYS, EPERM under a
 * seccomp profile, EAGAIN at fs.aio-max-nr). HOLDFAST_AIO=off chooses the threads.
 */
export async function syncAll(descriptors: readonly Descriptor[]): Promise<Outcomes> {
  if (descriptors.length === 0) return []
  if (refused || process.env['HOLDFAST_AIO'] === 'off') return syncOnThreads(descriptors)
  await turn.acquire()
  try {
    if (context === undefined || context.broken) context = native.AioContext.create()
    return await retryInvalid(descriptors, await context.sync(descriptors))
  } catch (error) {
    if (!(error instanceof native.AioRefused)) return descriptors.map(() => toError(error))
    // A full table of contexts may empty; a kernel or profile that refuses stays as it is.
    refused = error.reason.code !== 'EAGAIN'
    return await syncOnThreads(descriptors)
  } finally {
    turn.release()
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

/** The same on libuv's threads. */
export async function syncOnThreads(descriptors: readonly Descriptor[]): Promise<Outcomes> {
  return outcomesOf(descriptors.map((descriptor) => fsync(descriptor)))
}

/** The write-out hint for every file, then a wait for it: later fsyncs then share one commit of the journal. */
export async function startWriteOutAll(files: readonly Descriptor[]): Promise<Outcomes> {
  const started = await outcomesOf(files.map((file) => native.startWriteOut(file, false)))
  return outcomesOf(
    files.map((file, index) => {
      const failure = started[index]
      return failure === undefined ? native.startWriteOut(file, true) : Promise.reject(failure)
    }),
  )
}

async function outcomesOf(calls: Promise<void>[]): Promise<Outcomes> {
  const settled = await Promise.allSettled(calls)
  return settled.map((outcome) => {
    if (outcome.status === 'fulfilled') return undefined
    const error = toError(outcome.reason)
    // A file system without write-out (ESPIPE, ENOSYS under seccomp) has refused the hint, not failed to write.
    const harmless = isSystemError(error) && error.syscall === 'sync_file_range' && hintless.has(error.code)
    return harmless ? undefined : error
  })
}

const hintless = new Set(['ENOSYS', 'ESPIPE', 'EPERM', 'EINVAL'])
