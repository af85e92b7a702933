import { startInOwnPidNamespace } from '../../../native/index.js'
import { effectiveCapabilities } from '../../capabilities.js'
import { isSystemError } from '../../errors.js'

/**
 * All that the calling thread starts from now on ends with the first process of it, also what has a session of its own: the kernel sees
 * to that. For a thread that ends soon.
 *
 * @returns whether it does; not without CAP_SYS_ADMIN, or where the machine or a security module forbids it
 */
export function endTogether(): boolean {
  // A seccomp filter may end a process at a refused call.
  if (!effectiveCapabilities()('CAP_SYS_ADMIN')) return false
  try {
    startInOwnPidNamespace()
    return true
  } catch (error) {
    if (isSystemError(error)) return false
    throw error
  }
}
