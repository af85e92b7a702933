import { SystemError } from './errno.js'
import {
  callNow,
  checkDescriptor,
  checkInteger,
  checkText,
  declare,
  declareSystemCall,
  type LibcFunction,
} from './libc.js'
import { closeSync } from 'node:fs'

const setrlimit = declare('setrlimit', 'int', ['int', 'const void *'])
const coreLimit = 4
const prctl = declareSystemCall('prctl', ['int', 'long'])
const setDumpable = 4

/**
 * Keeps the memory of this process, which holds private keys, out of core files. The limit is one byte, not zero: a file needs at least a
 * page, and core(5)'s pipe handlers, which ignore zero, stop at one (fs/coredump.c). Where the hard limit is zero, which only
 * CAP_SYS_RESOURCE may raise, it makes the process undumpable instead. That is no more than the second choice, since it gives /proc/PID to
 * root. Throws SystemError.
 */
export function disableCoreDumps(): void {
  const limit = new BigUint64Array([1n, 1n])
  const { result, errno } = callNow(setrlimit, coreLimit, new Uint8Array(limit.buffer))
  if (result === 0) return
  if (callNow(prctl, setDumpable, 0).result === 0) return
  throw new SystemError('setrlimit', errno, undefined)
}

const clockGettime = declare('clock_gettime', 'int', ['int', 'void *'])
/** CLOCK_BOOTTIME (linux/time.h): what /proc/uptime shows. */
const sinceBoot = 7

/** Milliseconds since the start of the kernel. libc answers without a system call (vdso(7)). */
export function uptime(): number {
  const time = new DataView(new ArrayBuffer(16))
  callNow(clockGettime, sinceBoot, new Uint8Array(time.buffer))
  return Number(time.getBigInt64(0, true) * 1000n + time.getBigInt64(8, true) / 1_000_000n)
}

let trim: LibcFunction['bound'] | null | undefined

/**
 * Gives the pages that were freed back to the system, those in the middle of the heap included. glibc keeps them where a small block
 * above them is in use, and after one large block was freed all those of its size. Nothing where libc has no malloc_trim (musl).
 */
export function returnFreedMemory(): void {
  trim ??= find()
  trim?.(0)
}

function find(): LibcFunction['bound'] | null {
  try {
    return declare('malloc_trim', 'int', ['size_t']).bound
  } catch {
    return null
  }
}

const pidfdOpen = declareSystemCall('pidfd_open', ['int', 'unsigned int'])
const pidfdSendSignal = declareSystemCall('pidfd_send_signal', ['int', 'int', 'const void *', 'unsigned int'])

/** Of a process ID and of a signal: what fits into the kernel's int. */
const highest = 0x7fffffff

/**
 * pidfd_open(2): a descriptor, O_CLOEXEC, that stands for this process until its close, even after another process gets the number. Throws
 * SystemError: ESRCH where there is no such process; EINVAL or, since Linux 6.15, ENOENT for a thread that leads no process; ENOSYS before
 * Linux 5.3, EPERM or ENOSYS under a seccomp profile that does not know it.
 */
export function openProcess(pid: number): number {
  const { result, errno } = callNow(pidfdOpen, checkInteger('pid', pid, 1, highest), 0)
  if (result < 0) throw new SystemError('pidfd_open', errno, undefined)
  return result
}

/** pidfd_send_signal(2): kill(2) for the process that the descriptor stands for, and no other. Throws SystemError. */
export function signalProcess(process: number, signal: number): void {
  const { result, errno } = callNow(
    pidfdSendSignal,
    checkDescriptor(process),
    checkInteger('signal', signal, 0, highest),
    null,
    0,
  )
  if (result !== 0) throw new SystemError('pidfd_send_signal', errno, undefined)
}

const waitpid = declare('waitpid', 'int', ['int', 'const void *', 'int'])
/** include/uapi/linux/wait.h */
const WNOHANG = 1

/** waitpid(2) of a child that has ended, so that the kernel forgets it. Nothing where it runs. Throws SystemError: ECHILD where it is no child. */
export function reap(pid: number): void {
  const { result, errno } = callNow(waitpid, checkInteger('pid', pid, 1, highest), null, WNOHANG)
  if (result < 0) throw new SystemError('waitpid', errno, undefined)
}

// Linux, include/linux/socket.h and include/linux/net.h.
const unix = 1
const datagram = 2
const closeSocketOnExec = 0x80000
/** MSG_DONTWAIT | MSG_NOSIGNAL. */
const atOnce = 0x40 | 0x4000

/** Bytes of sun_path (unix(7)). */
const longestPath = 108

/** Bound at the first call: one process in many sends any. */
function bind() {
  return {
    socket: declare('socket', 'int', ['int', 'int', 'int']),
    sendto: declare('sendto', 'long', ['int', 'const void *', 'size_t', 'int', 'const void *', 'uint32_t']),
  }
}
let bound: ReturnType<typeof bind> | undefined

/**
 * One datagram to a Unix socket, by its path, or by `@` and the name of an abstract socket. Never waits: EAGAIN where the receiver's queue is
 * full. Throws SystemError.
 */
export function sendDatagram(address: string, text: string): void {
  const { socket, sendto } = (bound ??= bind())
  const to = socketAddress(address)
  const opened = callNow(socket, unix, datagram | closeSocketOnExec, 0)
  if (opened.result < 0) throw new SystemError('socket', opened.errno, undefined)
  try {
    const bytes = Buffer.from(text)
    const { result, errno } = callNow(sendto, opened.result, bytes, bytes.length, atOnce, to, to.length)
    if (result < 0) throw new SystemError('sendto', errno, address)
  } finally {
    closeSync(opened.result)
  }
}

/** struct sockaddr_un: an abstract name begins with NUL, and ends with the address; a path ends with NUL. */
function socketAddress(address: string): Buffer {
  const text = checkText(address)
  const name = Buffer.from(text.startsWith('@') ? `\0${text.slice(1)}` : `${text}\0`)
  if (name.length > longestPath) throw new TypeError(`longer than a socket's address may be: ${address}`)
  const family = Buffer.alloc(2)
  family.writeUInt16LE(unix)
  return Buffer.concat([family, name])
}
