import { checkText } from './arguments.js'
import { SystemError } from './errno.js'
import { callNow, declareSystemCall, systemCallNumber } from './libc.js'

/** Bound at the first call: one process in many makes any. */
let create: ReturnType<typeof declareSystemCall> | undefined

/** Linux, include/uapi/linux/memfd.h. */
const closeOnExec = 1

/**
 * memfd_create(2): a new file in memory, O_CLOEXEC, that goes with its last descriptor. /proc/PID/fd shows it as `/memfd:NAME (deleted)`.
 * Throws SystemError.
 */
export function createMemoryFile(name: string): number {
  create ??= declareSystemCall(['const char *', 'unsigned int'])
  const { result, errno } = callNow(create, systemCallNumber('memfd_create'), checkText(name), closeOnExec)
  if (result < 0) throw new SystemError('memfd_create', errno, undefined)
  return result
}
