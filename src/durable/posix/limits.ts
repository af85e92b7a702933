import { readFileSync } from 'node:fs'
import { codeOf } from '../../errors.js'

/** Most staged files that are open at a time. All of a large batch fit; every further barrier would cost flushes. */
export const mostStagedFiles = 256
/** Most directories of one tree: another one costs an openat2(2) and no flush. Several targets of a batch are on their way at a time. */
export const mostOpenDirectories = 32

/**
 * Most calls of one step that are under way at a time: more than libuv has threads (4), so that none of them waits for the next call. A call
 * costs a quarter then: 6 µs of processor time instead of 21, and one change of threads for six. Each may have a file open, in each target
 * of a batch.
 */
export const mostCallsAtATime = 8

/** At most so many, and this share of RLIMIT_NOFILE (proc(5)): locks, hooks and all else of the process need descriptors too. */
export function bound(most: number, share: number): number {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(limitsOfProcess())?.[1] ?? Infinity)
  return Math.max(1, Math.min(most, Math.floor(limit * share)))
}

/** Empty where /proc is not mounted: a program may import the library there, and the first call that needs /proc says so. */
function limitsOfProcess(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return ''
    throw error
  }
}
