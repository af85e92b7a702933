import * as fs from 'node:fs'
import * as native from '../../../native/index.js'

/*
 * Calls of node:fs that the kernel mostly answers from memory: on one of libuv's threads, or at once where native.atOnce() starts them.
 * Calls that wait for a disk by their nature, as fsync(2) does, are not among them.
 */

type Done = (error: Error | null, value?: unknown) => void

/** Names of calls that Node has with a callback and with an answer. */
type Name = keyof typeof fs & (keyof typeof fs extends infer Key ? (Key extends `${infer Of}Sync` ? Of : never) : never)

/** The call on a thread, or at once: then its callback runs before it returns. */
function either<Of extends Name>(name: Of): (typeof fs)[Of] {
  const call = (...args: unknown[]): void => {
    if (!native.isAtOnce()) {
      const later = fs[name] as (...args: unknown[]) => void
      later(...args)
      return
    }
    const done = args.pop() as Done
    let value: unknown
    try {
      const now = fs[`${name}Sync`] as (...args: unknown[]) => unknown
      value = now(...args)
    } catch (error) {
      done(error as Error)
      return
    }
    done(null, value)
  }
  return call as (typeof fs)[Of]
}

export const fchmod = either('fchmod')
export const fchown = either('fchown')
export const lstat = either('lstat')
export const mkdir = either('mkdir')
export const open = either('open')
export const read = either('read')
export const readdir = either('readdir')
export const rmdir = either('rmdir')
export const unlink = either('unlink')
export const write = either('write')
