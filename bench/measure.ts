/** What one run costs on a disk, and what is typical of several. */
import { execFileSync } from 'node:child_process'
import type { Disk } from '../test/disk/disk.js'

export interface Cost {
  /** Flushes that the disk was asked for. */
  flushes: number
  milliseconds: number
  /** Bytes that reached the disk, with all that was still to be written when the call returned. */
  written: number
}

/**
 * Runs the task once, from a file system at rest: what earlier runs have left to write is written before, since on a node
 * minutes pass between two publications. `disturb` comes between the two, and does not count. Throws if the disk's own count of flushes
 * and the kernel's differ.
 */
export async function costOf(
  disk: Disk,
  task: () => void | Promise<void>,
  disturb: () => void = () => undefined,
): Promise<Cost> {
  execFileSync('sync', ['--file-system', disk.mountPoint])
  disturb()
  const counted = await disk.counts()
  const before = { disk: counted.flushes, kernel: disk.kernelFlushes() }
  const start = performance.now()
  await task()
  const milliseconds = performance.now() - start
  const flushes = (await disk.counts()).flushes - before.disk
  const kernelFlushes = disk.kernelFlushes() - before.kernel
  if (flushes !== kernelFlushes) {
    throw new Error(`the disk counted ${flushes} flushes, the kernel ${kernelFlushes}: something else uses the disk`)
  }
  execFileSync('sync', ['--file-system', disk.mountPoint])
  return { flushes, milliseconds, written: (await disk.counts()).writtenBytes - counted.writtenBytes }
}

/** The median of each figure by itself. */
export function typical(costs: readonly Cost[]): Cost {
  return {
    flushes: median(costs.map(({ flushes }) => flushes)),
    milliseconds: median(costs.map(({ milliseconds }) => milliseconds)),
    written: median(costs.map(({ written }) => written)),
  }
}

/** The middle value, or the mean of the two in the middle; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2
}
