/**
 * The log of everything that reached the disk, in the order in which it was answered, from which any state after a power
 * cut can be rebuilt: a write is durable once a flush that *began* after the write's record has *ended* without error;
 * until then it may be on the disk or not, alone or with others.
 *
 * A record is 32 bytes and its data: kind, number, offset, length (u64 each, little-endian). Records are appended with one
 * writev each, so that the threads of the server need no lock between them.
 */
import { openSync, readSync, writevSync, closeSync, fstatSync } from 'node:fs'

export const kind = { write: 1, discard: 2, flushBegun: 3, flushEnded: 4, flushFailed: 5, mark: 6 } as const

const names = new Map<number, LogRecord['kind']>([
  [kind.write, 'write'],
  [kind.discard, 'discard'],
  [kind.flushBegun, 'flush-begun'],
  [kind.flushEnded, 'flush-ended'],
  [kind.flushFailed, 'flush-failed'],
  [kind.mark, 'mark'],
])

export interface LogRecord {
  kind: 'write' | 'discard' | 'flush-begun' | 'flush-ended' | 'flush-failed' | 'mark'
  /** Number of the write, of the discard or of the flush, from 1, since the counts were last reset; 0 for a mark. */
  number: number
  /** Bytes from the start of the disk, of a flush 0; and the disk's base: see fuse-disk.ts. */
  offset: number
  /** Bytes written or discarded. */
  length: number
  /** The written bytes; the text of a mark; empty for the rest. */
  data: Buffer
}

const headerBytes = 32

export function appendRecord(
  log: number,
  record: { kind: number; number: bigint; offset?: bigint; length?: number; data?: Uint8Array },
): void {
  const header = Buffer.alloc(headerBytes)
  header.writeBigUInt64LE(BigInt(record.kind), 0)
  header.writeBigUInt64LE(record.number, 8)
  header.writeBigUInt64LE(record.offset ?? 0n, 16)
  header.writeBigUInt64LE(BigInt(record.data?.length ?? record.length ?? 0), 24)
  writevSync(log, record.data === undefined ? [header] : [header, record.data])
}

/** Reads a log from its start; throws if it ends inside a record. */
export function* readLog(path: string): Generator<LogRecord> {
  const log = openSync(path, 'r')
  try {
    const end = fstatSync(log).size
    const read = (position: number, length: number): Buffer => {
      const bytes = Buffer.alloc(length)
      if (readSync(log, bytes, 0, length, position) !== length) {
        throw new Error(`${path}: ends inside the record at byte ${position}`)
      }
      return bytes
    }
    for (let position = 0; position < end;) {
      const header = read(position, headerBytes)
      const [code, number, offset, length] = [0, 8, 16, 24].map((at) => Number(header.readBigUInt64LE(at)))
      const name = names.get(code ?? 0)
      if (name === undefined || number === undefined || offset === undefined || length === undefined) {
        throw new Error(`${path}: no record at byte ${position}`)
      }
      const hasData = name === 'write' || name === 'mark'
      yield { kind: name, number, offset, length, data: read(position + headerBytes, hasData ? length : 0) }
      position += headerBytes + (hasData ? length : 0)
    }
  } finally {
    closeSync(log)
  }
}
