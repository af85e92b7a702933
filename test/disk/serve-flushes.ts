/**
 * The thread that answers flushes, each after the time that the disk takes for one, one after the other: a disk has one
 * cache, and the kernel's block layer never sends a second flush to a queue while one is under way (block/blk-flush.c).
 */
import { writeSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { cell, isFaulty, nextFlush, type DiskState } from './disk-state.js'
import { errno, reply } from './fuse-protocol.js'
import { appendRecord, kind } from './write-log.js'

const state = workerData as DiskState
const never = new Int32Array(new SharedArrayBuffer(4))

function sleep(microseconds: number): void {
  if (microseconds > 0) Atomics.wait(never, 0, 0, microseconds / 1000)
}

for (;;) {
  const { unique, number } = nextFlush(state)
  sleep(Number(Atomics.load(state.cells, cell.flushMicroseconds)))
  const failed = isFaulty(state, cell.failFlushAt, cell.failFlushTimes, number)
  const log = Number(Atomics.load(state.cells, cell.logDescriptor))
  const offset = Atomics.load(state.cells, cell.logBase)
  if (log >= 0) appendRecord(log, { kind: failed ? kind.flushFailed : kind.flushEnded, number, offset })
  Atomics.add(state.cells, cell.flushesAnswered, 1n)
  writeSync(state.fuse, reply(unique, failed ? errno.EIO : 0))
}
