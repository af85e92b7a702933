import { SystemError } from './errno.js'
import { callNow, declare } from './libc.js'

const setrlimit = declare('setrlimit', 'int', ['int', 'const void *'])
const coreLimit = 4

/**
 * Keeps the memory of this process, which holds private keys, out of core files. The limit is one byte, not zero: a file
 * needs at least a page, and core(5)'s pipe handlers, which ignore zero, stop at one (fs/coredump.c). Throws SystemError.
 */
export function disableCoreDumps(): void {
  const limit = new BigUint64Array([1n, 1n])
  const { result, errno } = callNow(setrlimit, coreLimit, new Uint8Array(limit.buffer))
  if (result !== 0) throw new SystemError('setrlimit', errno, undefined)
}
