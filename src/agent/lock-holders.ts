import { realpath, stat } from 'node:fs/promises'
import { flockHolders } from '../durable/index.js'
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

/** Rejects where there is no such file. */
async function holdersOf(path: string): Promise<number[]> {
  const real = await realpath(path)
  const { ino } = await stat(real, { bigint: true })
  return flockHolders(fileSystemOf(real), ino)
}
