/**
 * The thread that answers the kernel: one blocking read of /dev/fuse after the other, so that a request costs two system
 * calls and no turn of an event loop. Flushes are handed to a thread of their own, because a disk goes on serving reads
 * and writes while it flushes.
 */
import { readSync, writeSync, writevSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { cell, enqueueFlush, isFaulty, type DiskState } from './disk-state.js'
import * as fuse from './fuse-protocol.js'
import { appendRecord, kind } from './write-log.js'

const state = workerData as DiskState
const disk = new Uint8Array(state.bytes)
const request = Buffer.alloc(fuse.requestBytes)
const never = new Int32Array(new SharedArrayBuffer(4))

function send(answer: Buffer): void {
  writeSync(state.fuse, answer)
}

function count(index: number): bigint {
  return Atomics.add(state.cells, index, 1n) + 1n
}

function log(record: Parameters<typeof appendRecord>[1]): void {
  const descriptor = Number(Atomics.load(state.cells, cell.logDescriptor))
  const offset = (record.offset ?? 0n) + Atomics.load(state.cells, cell.logBase)
  if (descriptor >= 0) appendRecord(descriptor, { ...record, offset })
}

function inside(offset: bigint, length: number): boolean {
  return offset + BigInt(length) <= BigInt(disk.length)
}

function read(unique: bigint): void {
  const offset = request.readBigUInt64LE(fuse.inHeader + 8)
  const wanted = request.readUInt32LE(fuse.inHeader + 16)
  count(cell.reads)
  const bytes = disk.subarray(Number(offset), Math.min(Number(offset) + wanted, disk.length))
  writevSync(state.fuse, [fuse.readReplyHead(unique, bytes.length), bytes])
}

function write(unique: bigint): void {
  const offset = request.readBigUInt64LE(fuse.inHeader + 8)
  const length = request.readUInt32LE(fuse.inHeader + 16)
  const number = count(cell.writes)
  if (!inside(offset, length) || isFaulty(state, cell.failWriteAt, cell.failWriteTimes, number)) {
    send(fuse.reply(unique, fuse.errno.EIO))
    return
  }
  const start = fuse.inHeader + fuse.writeIn
  const data = request.subarray(start, start + length)
  disk.set(data, Number(offset))
  Atomics.add(state.cells, cell.writtenBytes, BigInt(length))
  // Logged before it is answered: what the file system does next may depend on it.
  log({ kind: kind.write, number, offset, data })
  send(fuse.writeReply(unique, length))
}

/** Discards and zeroed ranges: both read as zeros afterwards. */
function fallocate(unique: bigint): void {
  const offset = request.readBigUInt64LE(fuse.inHeader + 8)
  const length = Number(request.readBigUInt64LE(fuse.inHeader + 16))
  const mode = request.readUInt32LE(fuse.inHeader + 24)
  const punchesOrZeroes = (mode & 0x12) !== 0
  if (!punchesOrZeroes || !inside(offset, length)) {
    send(fuse.reply(unique, fuse.errno.EOPNOTSUPP))
    return
  }
  const number = count(cell.discards)
  disk.fill(0, Number(offset), Number(offset) + length)
  log({ kind: kind.discard, number, offset, length })
  send(fuse.reply(unique))
}

function flush(unique: bigint): void {
  const number = count(cell.flushes)
  log({ kind: kind.flushBegun, number })
  enqueueFlush(state, unique, number)
}

const succeed = (unique: bigint): void => send(fuse.reply(unique))
const answers = new Map<number, (unique: bigint) => void>([
  [fuse.opcode.read, read],
  [fuse.opcode.write, write],
  [fuse.opcode.fsync, flush],
  [fuse.opcode.fallocate, fallocate],
  [fuse.opcode.getattr, (unique) => send(fuse.attributesReply(unique, disk.length))],
  [fuse.opcode.setattr, (unique) => send(fuse.attributesReply(unique, disk.length))],
  [fuse.opcode.open, (unique) => send(fuse.openReply(unique))],
  [fuse.opcode.statfs, (unique) => send(fuse.statfsReply(unique, disk.length))],
  [fuse.opcode.init, (unique) => send(fuse.initReply(unique))],
  [fuse.opcode.release, succeed],
  [fuse.opcode.flush, succeed],
  [fuse.opcode.access, succeed],
  [fuse.opcode.destroy, succeed],
])
/** These get no answer. */
const unanswered = new Set<number>([fuse.opcode.forget, fuse.opcode.batchForget, fuse.opcode.interrupt])
const refuse = (unique: bigint): void => send(fuse.reply(unique, fuse.errno.ENOSYS))

/** Waits for one request and answers it; false once the file system is unmounted. */
function serveOne(): boolean {
  try {
    readSync(state.fuse, request)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    // ENOENT: the request was withdrawn while it was being read.
    if (code === 'ENOENT' || code === 'EINTR' || code === 'EAGAIN') return true
    if (code === 'ENODEV') return false
    if (code === 'EPERM') {
      // Not mounted yet: the descriptor belongs to no file system. mount(8) may already ask before it returns.
      Atomics.wait(never, 0, 0, 1)
      return true
    }
    throw error
  }
  const operation = request.readUInt32LE(4)
  if (!unanswered.has(operation)) (answers.get(operation) ?? refuse)(request.readBigUInt64LE(8))
  return true
}

while (serveOne()) {
  // Everything happens in serveOne.
}
