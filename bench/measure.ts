/** The cost of one run on a disk, and the typical one of several. */
import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Disk } from '../test/disk/disk.js'

export interface Cost {
  /** Flushes that the disk was asked for. */
  flushes: number
  milliseconds: number
}

export interface WrittenCost extends Cost {
  /** Bytes that reached the disk, with all that was still to be written when the call returned. */
  written: number
}

/**
 * Runs the task once, from a file system at rest: what earlier runs have left to write is written before, since on a node
 * minutes pass between two publications. `disturb` comes between the two, and does not count. Throws if the disk's own count of flushes
 * and the kernel's differ, and go on to.
 */
export async function costOf(
  disk: Disk,
  task: () => void | Promise<void>,
  disturb: () => void = () => undefined,
): Promise<Cost> {
  execFileSync('sync', ['--file-system', disk.mountPoint])
  disturb()
  const before = { disk: (await disk.counts()).flushes, kernel: disk.kernelFlushes() }
  const start = performance.now()
  await task()
  const milliseconds = performance.now() - start
  return { flushes: await flushesSince(disk, before), milliseconds }
}

/** The disk counts a flush when it comes, and the kernel once it has ended: while one is under way, of a journal's own commit, they differ. */
async function flushesSince(disk: Disk, before: { disk: number; kernel: number }): Promise<number> {
  for (let looks = 100; ; looks--) {
    const flushes = (await disk.counts()).flushes - before.disk
    const kernelFlushes = disk.kernelFlushes() - before.kernel
    if (flushes === kernelFlushes) return flushes
    if (looks === 0) {
      throw new Error(`the disk counted ${flushes} flushes, the kernel ${kernelFlushes}: something else uses the disk`)
    }
    await sleep(10)
  }
}

/** The same, with its written bytes, after a sync. */
export async function writtenCostOf(disk: Disk, task: () => Promise<void>): Promise<WrittenCost> {
  const writtenBytes = async (): Promise<number> => {
    execFileSync('sync', ['--file-system', disk.mountPoint])
    return (await disk.counts()).writtenBytes
  }
  const before = await writtenBytes()
  const cost = await costOf(disk, task)
  return { ...cost, written: (await writtenBytes()) - before }
}

/** The median of each figure by itself. */
export function typical(costs: readonly Cost[]): Cost {
  return {
    flushes: median(costs.map(({ flushes }) => flushes)),
    milliseconds: median(costs.map(({ milliseconds }) => milliseconds)),
  }
}

/** The middle value, or the mean of the two in the middle; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2
}
