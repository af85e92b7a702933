import { readFile, realpath, stat } from 'node:fs/promises'
import { fileSystemOf } from './file-systems.js'
import { isDying } from './process-identity.js'

/**
 * The processes that hold the flock(2) of a file, where all of them are dying; none where the lock is free, where a living process holds
 * it, and where this process does not see the holder, as in a container without hostPID.
 */
export async function dyingHolders(path: string): Promise<readonly number[]> {
  const holders = await holdersOf(path).catch(() => [])
  const dying = await Promise.all(holders.map(isDying))
  return dying.every(Boolean) ? holders : []
}

/** By proc_locks(5), which names a file by its file system, as mountinfo does, and its inode. Rejects where there is no such file. */
async function holdersOf(path: string): Promise<number[]> {
  const real = await realpath(path)
  const { ino } = await stat(real, { bigint: true })
  const [major = 0, minor = 0] = fileSystemOf(real).split(':').map(Number)
  const hexadecimal = (number: number): string => number.toString(16).padStart(2, '0')
  const file = `${hexadecimal(major)}:${hexadecimal(minor)}:${ino}`
  const locks = await readFile('/proc/locks', 'latin1')
  // `1: FLOCK  ADVISORY  WRITE 4711 08:02:131 0 EOF`; a line of a process that waits has `->` after the number.
  const held = [...locks.matchAll(/^\d+: FLOCK +\S+ +\S+ +(\d+) (\S+) /gm)]
  return [...new Set(held.filter(([, , where]) => where === file).map(([, pid]) => Number(pid)))]
}
