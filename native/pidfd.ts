import { checkDescriptor, checkInteger } from './arguments.js'
import { SystemError } from './errno.js'
import { callNow, declareSystemCall, systemCallNumber } from './libc.js'

const open = declareSystemCall(['int', 'unsigned int'])
const send = declareSystemCall(['int', 'int', 'const void *', 'unsigned int'])

/** Of a process ID and of a signal: what fits into the kernel's int. */
const highest = 0x7fffffff

/**
 * pidfd_open(2): a descriptor, O_CLOEXEC, that stands for this process until its close, even after another process gets the number. Throws
 * SystemError: ESRCH where there is no such process; EINVAL or, since Linux 6.15, ENOENT for a thread that leads no process; ENOSYS before
 * Linux 5.3, EPERM or ENOSYS under a seccomp profile that does not know it.
 */
export function openProcess(pid: number): number {
  const { result, errno } = callNow(open, systemCallNumber('pidfd_open'), checkInteger('pid', pid, 1, highest), 0)
  if (result < 0) throw new SystemError('pidfd_open', errno, undefined)
  return result
}

/** pidfd_send_signal(2): kill(2) for the process that the descriptor stands for, and no other. Throws SystemError. */
export function signalProcess(process: number, signal: number): void {
  const number = systemCallNumber('pidfd_send_signal')
  const { result, errno } = callNow(
    send,
    number,
    checkDescriptor(process),
    checkInteger('signal', signal, 0, highest),
    null,
    0,
  )
  if (result !== 0) throw new SystemError('pidfd_send_signal', errno, undefined)
}
