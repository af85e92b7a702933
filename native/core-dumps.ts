import { SystemError } from './errno.js'
import { callNow, declare, declareSystemCall, systemCallNumber } from './libc.js'

const setrlimit = declare('setrlimit', 'int', ['int', 'const void *'])
const coreLimit = 4
const prctl = declareSystemCall(['int', 'long'])
const prctlNumber = systemCallNumber('prctl')
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
  if (callNow(prctl, prctlNumber, setDumpable, 0).result === 0) return
  throw new SystemError('setrlimit', errno, undefined)
}
