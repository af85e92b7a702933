import { readFileSync, readlinkSync } from 'node:fs'
import type { LockHolder } from '../file-system.js'

/*
 * Who holds a flock(2), by proc_locks(5). It names a file by its file system, as mountinfo does, and its inode; and processes by the IDs that
 * they have in the PID namespace of this procfs. It leaves out those that have none there.
 */

/** `device`: `MAJOR:MINOR`, as mountinfo has it. Without a file: the holders of any. @throws what the kernel answers where there is no procfs */
export function flockHolders(device?: string, inode?: bigint): number[] {
  const [major = 0, minor = 0] = (device ?? '').split(':').map(Number)
  const hexadecimal = (number: number): string => number.toString(16).padStart(2, '0')
  const file = device === undefined ? undefined : `${hexadecimal(major)}:${hexadecimal(minor)}:${inode}`
  const locks = readFileSync('/proc/locks', 'latin1')
  // `1: FLOCK  ADVISORY  WRITE 4711 08:02:131 0 EOF`; a line of a process that waits has `->` after the number.
  const held = [...locks.matchAll(/^\d+: FLOCK +\S+ +\S+ +(\d+) (\S+) /gm)]
  return [...new Set(held.filter(([, , where]) => file === undefined || where === file).map(([, pid]) => Number(pid)))]
}

/** undefined: no process that this one sees, or the kernel does not tell. */
export function lockHolder(device: string, inode: bigint): LockHolder | undefined {
  try {
    const [holder] = flockHolders(device, inode)
    if (holder === undefined) return undefined
    return holder === Number(readlinkSync('/proc/self')) ? 'another call of this process' : 'another process'
  } catch {
    return undefined
  }
}
