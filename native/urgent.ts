import { closeSync, writeSync } from 'node:fs'
import { checkDescriptor } from './arguments.js'
import { errnoName, SystemError } from './errno.js'
import { allocate, callNow, callWithoutLimit, declare } from './libc.js'

const poll = declare('poll', 'int', ['uint64_t', 'unsigned long', 'int'])
const eventfd = declare('eventfd', 'int', ['unsigned int', 'int'])

const closeOnExec = 0x80000
const urgent = 0x2
const readable = 0x1
const sizeOfPollfd = 8
const forever = -1

/**
 * Waits for an urgent event on a descriptor (POLLPRI), such as a change of /proc/self/mountinfo. The process sleeps until then, and one
 * thread of libuv's pool stays busy. libuv itself cannot wait for it: it takes no descriptor of such a file.
 */
export class UrgentEvents {
  readonly #wake: number
  readonly #polled = allocate(2 * sizeOfPollfd)
  #waiting = false
  #closed = false
  /** The process ends only once all threads of the pool have ended. */
  readonly #atExit = (): void => this.close()

  /** Throws SystemError, as EMFILE where the process is out of descriptors. */
  constructor(descriptor: number) {
    const { result, errno } = callNow(eventfd, 0, closeOnExec)
    if (result < 0) throw new SystemError('eventfd', errno, undefined)
    this.#wake = result
    const { view } = this.#polled
    view.setInt32(0, checkDescriptor(descriptor), true)
    view.setInt16(4, urgent, true)
    view.setInt32(sizeOfPollfd, this.#wake, true)
    view.setInt16(sizeOfPollfd + 4, readable, true)
    process.once('exit', this.#atExit)
  }

  /** Resolves with true at the next event, and with false once this is closed. One call at a time. Rejects with SystemError. */
  async next(): Promise<boolean> {
    if (this.#waiting) throw new Error('one call waits already')
    if (this.#closed) return false
    this.#waiting = true
    try {
      for (;;) {
        const { result, errno } = await callWithoutLimit(poll, this.#polled.address, 2, forever)
        if (result !== -1) return !this.#isClosed()
        if (errnoName(errno) !== 'EINTR') throw new SystemError('poll', errno, undefined)
      }
    } finally {
      this.#waiting = false
      if (this.#isClosed()) closeSync(this.#wake)
    }
  }

  /** Ends the call that waits. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    process.off('exit', this.#atExit)
    if (this.#waiting) writeSync(this.#wake, new BigUint64Array([1n]))
    else closeSync(this.#wake)
  }

  #isClosed(): boolean {
    return this.#closed
  }
}
