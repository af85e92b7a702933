import * as native from '../../native/index.js'
import { isSystemError, toError } from '../errors.js'

/*
 * node:fs's calls on libuv's threads, by their callbacks: `fs.promises` costs half as much again for each call, and a batch
 * makes a thousand. A failure names the path that a person knows, not /proc/self/fd.
 */

/** What node:fs calls at the end. */
export type Done<T> = (error: Error | null, value?: T) => void

/** Starts a call. `path` is asked for only where it failed. */
export function call<T>(path: () => string, start: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error) reject(tell(path(), error))
      else resolve(value as T)
    })
  })
}

/** A call that is made at once: only what cannot wait for a disk. */
export function callNow<T>(path: () => string, start: () => T): Promise<T> {
  try {
    return Promise.resolve(start())
  } catch (error) {
    return Promise.reject(tell(path(), error))
  }
}

/** A call that answers with a promise of its own. */
export async function told<T>(path: () => string, calling: Promise<T>): Promise<T> {
  try {
    return await calling
  } catch (error) {
    throw tell(path(), error)
  }
}

/** A failure with the path that a person knows. */
export function tell(path: string, error: unknown): Error {
  if (!isSystemError(error)) return toError(error)
  // libuv has no name for EDQUOT, EUCLEAN and some more.
  const { errno } = error as NodeJS.ErrnoException
  if (error.code.startsWith('Unknown') && errno !== undefined) error.code = native.errnoName(Math.abs(errno))
  error.path = path
  error.message = `${error.syscall} ${path}: ${error.code}`
  return error
}
