import { startInOwnPidNamespace } from '../../../native/index.js'
import { effectiveCapabilities } from '../../capabilities.js'
import { isSystemError } from '../../errors.js'

/**
 * From now on the kernel ends all processes of the calling thread with the first of them, also those in a new session. For a thread that
 * ends soon.
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
