/**
 * What the threads of the disk server share: the disk's bytes, its counts, its settings and the queue of flushes. Every
 * access to the 64-bit cells goes through Atomics.
 */

/** Cells of the shared array. `fail…At` is the count at which the fault begins (0: never), `fail…Times` how often it is met. */
export const cell = {
  reads: 0,
  writes: 1,
  writtenBytes: 2,
  flushes: 3,
  discards: 4,
  flushMicroseconds: 5,
  failWriteAt: 6,
  failWriteTimes: 7,
  failFlushAt: 8,
  failFlushTimes: 9,
  /** Descriptor of the write log; -1 while nothing is logged. */
  logDescriptor: 10,
  /** Flushes asked for and answered so far: the queue's two ends. */
  flushesQueued: 11,
  flushesAnswered: 12,
  /** Added to each offset in the log. */
  logBase: 13,
} as const

const cells = 16
/** More flushes than can be waiting: the block layer sends one at a time. */
const queueLength = 1024

export interface DiskState {
  fuse: number
  bytes: SharedArrayBuffer
  cells: BigInt64Array
  queue: BigInt64Array
}

export function createState(fuse: number, size: number): DiskState {
  const state = {
    fuse,
    // Untouched pages cost no memory: the disk is as sparse as its content.
    bytes: new SharedArrayBuffer(size),
    cells: new BigInt64Array(new SharedArrayBuffer(cells * 8)),
    queue: new BigInt64Array(new SharedArrayBuffer(queueLength * 16)),
  }
  Atomics.store(state.cells, cell.logDescriptor, -1n)
  return state
}

/** Hands a flush, the `number`-th since the counts were reset, to the thread that serves flushes. */
export function enqueueFlush(state: DiskState, unique: bigint, number: bigint): void {
  const position = Atomics.load(state.cells, cell.flushesQueued)
  if (position - Atomics.load(state.cells, cell.flushesAnswered) >= BigInt(queueLength)) {
    throw new Error(`more than ${queueLength} flushes are waiting`)
  }
  const slot = 2 * Number(position % BigInt(queueLength))
  Atomics.store(state.queue, slot, unique)
  Atomics.store(state.queue, slot + 1, number)
  Atomics.store(state.cells, cell.flushesQueued, position + 1n)
  Atomics.notify(state.cells, cell.flushesQueued)
}

/** The oldest flush that is not answered, waiting for one. */
export function nextFlush(state: DiskState): { unique: bigint; number: bigint } {
  const position = Atomics.load(state.cells, cell.flushesAnswered)
  Atomics.wait(state.cells, cell.flushesQueued, position)
  const slot = 2 * Number(position % BigInt(queueLength))
  return { unique: Atomics.load(state.queue, slot), number: Atomics.load(state.queue, slot + 1) }
}

/** Does the injected fault hit the `count`-th operation? */
export function isFaulty(state: DiskState, at: number, times: number, count: bigint): boolean {
  const first = Atomics.load(state.cells, at)
  return first > 0n && count >= first && count < first + Atomics.load(state.cells, times)
}
