import { checkDescriptor } from './arguments.js'
import { errnoName, SystemError } from './errno.js'
import { callNow, declare } from './libc.js'

const flock = declare('flock', 'int', ['int', 'int'])

const exclusive = 2
const nonBlocking = 4

/**
 * flock(2), LOCK_EX | LOCK_NB: true when the lock is ours until the descriptor is closed, false when another open file
 * holds it. Never waits. Throws SystemError.
 */
export function tryLock(fd: number): boolean {
  const { result, errno } = callNow(flock, checkDescriptor(fd), exclusive | nonBlocking)
  if (result === 0) return true
  if (errnoName(errno) === 'EAGAIN') return false
  throw new SystemError('flock', errno, undefined)
}
