import * as fs from 'node:fs'
import * as native from '../../../native/index.js'

/** What may wait for a disk; but for fsync, which goes on beside other calls even where these are made on this thread. */
const names = [
  ...([
    'open',
    'close',
    'read',
    'write',
    'copyFile',
    'fchmod',
    'fchown',
    'lchown',
    'fstat',
    'lstat',
    'statfs',
  ] as const),
  ...(['mkdir', 'rmdir', 'unlink', 'symlink', 'readlink', 'readdir'] as const),
]

type Calls = Pick<typeof fs, (typeof names)[number]>

/** The same calls with the same callbacks, made before they return. */
const atOnce = Object.fromEntries(names.map((name) => [name, nowAs(name)])) as unknown as Calls

function nowAs(name: (typeof names)[number]): (...args: unknown[]) => void {
  const call = fs[`${name}Sync`] as (...args: unknown[]) => unknown
  return (...args) => {
    const done = args.pop() as (error: unknown, value?: unknown) => void
    let value: unknown
    try {
      value = call(...args)
    } catch (error) {
      done(error)
      return
    }
    done(null, value)
  }
}

/** The calls of node:fs that may wait for a disk, by their callbacks: on a thread of libuv's pool, or, in a command, on this one. */
export function later(): Calls {
  return native.isOnThisThread() ? atOnce : fs
}
