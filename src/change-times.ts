import { sleep } from './deadline.js'

/*
 * An inode's ctime proves that nothing has changed only once a change would get another one. It comes from a clock that ticks, and where
 * the file system keeps whole seconds (ext4 with inodes of 128 bytes) it is the same for a second.
 */

const second = 1_000_000_000n

/** Milliseconds: a tick of the kernel at 100 Hz, twice. */
const tick = 20

/** Whether the file system keeps whole seconds; one that keeps more hits one once in a thousand million times. `changed`: in nanoseconds. */
export function isWholeSecond(changed: bigint): boolean {
  return changed % second === 0n
}

/** Milliseconds from `now`, since the epoch, in which another change may get the same time; 0 once none can. */
export function freshFor(changed: bigint, now: number): number {
  const grain = isWholeSecond(changed) ? 1000 + tick : tick
  const age = now - Number(changed / 1_000_000n)
  // A time far ahead is of a clock that was set back since: no change gets that now.
  return Math.abs(age) <= grain ? grain - age : 0
}

/** Waits until no change can get this time. */
export async function outlast(changed: bigint, now: number): Promise<void> {
  const left = freshFor(changed, now)
  if (left > 0) await sleep(left)
}
