import * as fs from 'node:fs'
import * as native from '../../../native/index.js'

/*
 * Calls of node:fs that mostly find what they touch in memory: on one of libuv's threads, or at once where native.atOnce() starts them. What
 * waits for a disk by its nature, as fsync(2) does, is not among them.
 */

type Done = (error: Error | null, value?: unknown) => void

/** The same call, by its callback and by its answer. */
function either<Call>(onThread: () => Call, now: () => (...args: never[]) => unknown): Call {
  const call = (...args: unknown[]): void => {
    if (!native.isAtOnce()) {
      const later = onThread() as (...args: unknown[]) => void
      later(...args)
      return
    }
    const done = args.pop() as Done
    let value: unknown
    try {
      value = now()(...(args as never[]))
    } catch (error) {
      done(error as Error)
      return
    }
    done(null, value)
  }
  return call as Call
}

export const fchmod = either(
  () => fs.fchmod,
  () => fs.fchmodSync,
)
export const fchown = either(
  () => fs.fchown,
  () => fs.fchownSync,
)
export const lstat = either(
  () => fs.lstat,
  () => fs.lstatSync,
)
export const mkdir = either(
  () => fs.mkdir,
  () => fs.mkdirSync,
)
export const open = either(
  () => fs.open,
  () => fs.openSync,
)
export const read = either(
  () => fs.read,
  () => fs.readSync,
)
export const readdir = either(
  () => fs.readdir,
  () => fs.readdirSync,
)
export const rmdir = either(
  () => fs.rmdir,
  () => fs.rmdirSync,
)
export const unlink = either(
  () => fs.unlink,
  () => fs.unlinkSync,
)
export const write = either(
  () => fs.write,
  () => fs.writeSync,
)
