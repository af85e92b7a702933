import { errnoName, SystemError } from './errno.js'
import { allocate, callNow, callOnThread, checkDescriptor, declareSystemCall } from './libc.js'

/*
 * Linux's AIO (io_submit(2)) with IOCB_CMD_FSYNC: each request runs fsync in another kernel worker, all at once, directories too, and
 * reports its own errno. A barrier over any number of files is so one submission and one wait, on one thread, and the fsyncs share the file
 * system's commits.
 *
 * One context lives as long as the process: io_destroy takes tens of milliseconds. Only one barrier uses it at a time.
 */

const ioSetup = declareSystemCall('io_setup', ['unsigned int', 'uint64_t'])
const ioSubmit = declareSystemCall('io_submit', ['uint64_t', 'long', 'uint64_t'])
const ioGetevents = declareSystemCall('io_getevents', ['uint64_t', 'long', 'long', 'uint64_t', 'uint64_t'])

/**
 * Requests in flight at most. They run on a workqueue that the whole kernel shares: 2,500 of them on a slow disk delayed
 * an fsync on tmpfs by 13 s, 900 did not. 256 lets 200 files and their directories share one round: on btrfs at 200 files
 * a cap of 200 costs 10 flushes, this one 6.
 */
export const maximumInFlight = 256

const commandFsync = 2
const sizeOfRequest = 64
const sizeOfEvent = 32
const sizeOfPointer = 8

/** The kernel, or a seccomp profile, refuses AIO: fsync on threads instead. */
export class AioRefused extends Error {
  override readonly name = 'AioRefused'
  constructor(readonly reason: SystemError) {
    super(`asynchronous I/O is refused (${reason.message})`, { cause: reason })
  }
}

/** What became of one fsync: undefined when it succeeded. */
export type SyncOutcome = SystemError | undefined

export class AioContext {
  readonly #context: bigint
  readonly #requests = allocate(maximumInFlight * sizeOfRequest)
  readonly #pointers = allocate(maximumInFlight * sizeOfPointer)
  readonly #events = allocate(maximumInFlight * sizeOfEvent)
  #barriers = 0
  #broken = false

  private constructor(context: bigint) {
    this.#context = context
    for (let slot = 0; slot < maximumInFlight; slot++) {
      const address = this.#requests.address + BigInt(slot * sizeOfRequest)
      this.#pointers.view.setBigUint64(slot * sizeOfPointer, address, true)
    }
  }

  /** Throws AioRefused: ENOSYS, EPERM, EAGAIN at fs.aio-max-nr. */
  static create(): AioContext {
    const context = allocate(8)
    context.view.setBigUint64(0, 0n, true)
    const { result, errno } = callNow(ioSetup, maximumInFlight, context.address)
    if (result !== 0) throw new AioRefused(new SystemError('io_setup', errno, undefined))
    return new AioContext(context.view.getBigUint64(0, true))
  }

  /** After a failure to collect every completion: stale ones could answer for a later barrier. Use a new context. */
  get broken(): boolean {
    return this.#broken
  }

  /**
   * fsync of every descriptor, one outcome for each, in order. Returns only when every request that was submitted has
   * been answered. Throws AioRefused where nothing was submitted and the kernel will not have it.
   */
  async sync(descriptors: readonly number[]): Promise<SyncOutcome[]> {
    if (this.#broken) throw new Error('this AIO context has unanswered requests and may not be used again')
    descriptors.forEach(checkDescriptor)
    this.#barriers = (this.#barriers + 1) >>> 0
    const barrier = this.#barriers
    const outcomes: SyncOutcome[] = new Array<SyncOutcome>(descriptors.length).fill(undefined)
    let next = 0
    let inFlight = 0
    try {
      for (;;) {
        while (next < descriptors.length && inFlight < maximumInFlight) {
          const batch = Math.min(maximumInFlight - inFlight, descriptors.length - next)
          const submitted = this.#submit(descriptors, next, batch, barrier)
          if (typeof submitted === 'number') {
            next += submitted
            inFlight += submitted
            continue
          }
          // The ring is full: collect first. With nothing in flight there is nothing to wait for.
          if (submitted.code === 'EAGAIN' && inFlight > 0) break
          if (next === 0 && refusals.has(submitted.code)) throw new AioRefused(submitted)
          // io_submit fails on the first request that it cannot take: that is this descriptor's own outcome.
          outcomes[next] = submitted
          next += 1
        }
        // A full ring means requests in flight, so with none in flight there is nothing to submit, either.
        if (inFlight === 0) return outcomes
        const all = next === descriptors.length
        inFlight -= await this.#collect(all ? inFlight : 1, inFlight, barrier, outcomes)
      }
    } catch (error) {
      if (inFlight > 0) this.#broken = true
      throw error
    }
  }

  /** Submits up to `count` requests; how many were taken (at least one), or why the first was not. */
  #submit(descriptors: readonly number[], first: number, count: number, barrier: number): number | SystemError {
    const { view } = this.#requests
    for (let slot = 0; slot < count; slot++) {
      const at = slot * sizeOfRequest
      for (let byte = 0; byte < sizeOfRequest; byte += 8) view.setBigUint64(at + byte, 0n, true)
      view.setUint32(at, first + slot, true)
      view.setUint32(at + 4, barrier, true)
      view.setUint16(at + 16, commandFsync, true)
      view.setUint32(at + 20, descriptors[first + slot] ?? -1, true)
    }
    // The kernel copies the requests before the call returns, so the slots are free again for the next submission. It hands each fsync to a
    // worker of its own (aio_fsync in fs/aio.c), and so waits for no disk here.
    const { result, errno } = callNow(ioSubmit, this.#context, count, this.#pointers.address)
    if (result > 0) return result
    return new SystemError('io_submit', errno, undefined)
  }

  /** Waits for at least `minimum` completions; how many of this barrier's arrived. */
  async #collect(minimum: number, maximum: number, barrier: number, outcomes: SyncOutcome[]): Promise<number> {
    const { result, errno } = await callOnThread(ioGetevents, this.#context, minimum, maximum, this.#events.address, 0n)
    if (result < 0) {
      if (errnoName(errno) === 'EINTR') return 0
      throw new SystemError('io_getevents', errno, undefined)
    }
    let own = 0
    for (let slot = 0; slot < result; slot++) {
      const at = slot * sizeOfEvent
      // A completion of an earlier barrier says nothing about this one's files.
      if (this.#events.view.getUint32(at + 4, true) !== barrier) continue
      own += 1
      const index = this.#events.view.getUint32(at, true)
      const answer = Number(this.#events.view.getBigInt64(at + 16, true))
      outcomes[index] = answer < 0 ? new SystemError('fsync', -answer, undefined) : undefined
    }
    return own
  }
}

/** EINVAL is not among them: it may be said of one descriptor, and a kernel before 4.18 says it of each. */
const refusals = new Set(['ENOSYS', 'EPERM', 'EACCES', 'EAGAIN'])
