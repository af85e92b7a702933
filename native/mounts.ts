import { errnoName, SystemError } from './errno.js'
import { allocate, callNow, callWithoutLimit, checkDescriptor, checkText, declare, type LibcFunction } from './libc.js'
import { closeSync, writeSync } from 'node:fs'

const unshare = declare('unshare', 'int', ['int'])
const umount2 = declare('umount2', 'int', ['const char *', 'int'])
const mount = declare('mount', 'int', ['const char *', 'const char *', 'const char *', 'unsigned long', 'const char *'])

// Source: Linux, include/uapi/linux/sched.h and include/uapi/linux/mount.h.
const newMountNamespace = 0x20000
const newPidNamespace = 0x20000000
const bind = 0x1000
const recursive = 0x4000
const slave = 0x80000
const detach = 2

/**
 * Moves the calling thread, and the processes that it starts, to a new mount namespace. An unmount elsewhere unmounts here, too, so that
 * this keeps no disk busy; a mount here shows nowhere else. For a thread that ends soon: there is no way back. Throws SystemError: EPERM
 * without CAP_SYS_ADMIN.
 */
export function enterOwnMountNamespace(): void {
  mountCall('unshare', '/', unshare, newMountNamespace)
  mountCall('mount', '/', mount, 'none', '/', null, slave | recursive, null)
}

/**
 * Gives the processes that the calling thread starts from now on a new PID namespace: the first of them is number 1 there, and the kernel
 * ends all others with it (pid_namespaces(7)). The thread itself stays where it is, and can start no threads any more. Throws SystemError:
 * EPERM without CAP_SYS_ADMIN, ENOSPC where the machine allows no more of them.
 */
export function startInOwnPidNamespace(): void {
  mountCall('unshare', '/', unshare, newPidNamespace)
}

/** Makes a directory or a file show under another path, too, for this thread's namespace. Throws SystemError. */
export function bindMount(source: string, target: string): void {
  mountCall('mount', target, mount, checkText(source), checkText(target), null, bind, null)
}

/** An empty directory in memory over another one, with mode 0755. Throws SystemError. */
export function mountMemory(target: string): void {
  mountCall('mount', target, mount, 'none', checkText(target), 'tmpfs', 0, 'mode=0755,size=1m')
}

/** Takes the newest mount at a path away, with all that is mounted below it. Throws SystemError. */
export function unmount(target: string): void {
  mountCall('umount2', target, umount2, checkText(target), detach)
}

function mountCall(name: string, path: string, fn: LibcFunction, ...args: (number | string | null)[]): void {
  const { result, errno } = callNow(fn, ...args)
  if (result !== 0) throw new SystemError(name, errno, path)
}

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
