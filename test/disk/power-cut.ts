/**
 * The content of a disk when its power comes back, from its log (write-log.ts): an honest disk has all writes before the beginning of an
 * answered flush, and any of the rest. A lying one answers flushes, and does nothing for them: it writes in the background, in order or in
 * none, and loses the remaining writes, acknowledged or not.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { LogRecord } from './write-log.js'
import type { Random } from '../random.js'

export type Cache = 'honest' | 'lying' | 'lying and reordering'

/** Writes that a lying disk is behind, at least, and how many more may be drawn. */
const lag = { least: 60, more: 100 }

/** Turns the image from before the log into the content of the disk afterwards. */
export function cutPower(image: string, records: readonly LogRecord[], cache: Cache, random: Random): void {
  const bytes = readFileSync(image)
  for (const { kind, offset, length, data } of survivors(records, cache, random)) {
    if (kind === 'write') data.copy(bytes, offset)
    if (kind === 'discard') bytes.fill(0, offset, offset + length)
  }
  writeFileSync(image, bytes)
}

function survivors(records: readonly LogRecord[], cache: Cache, random: Random): LogRecord[] {
  const changes = (record: LogRecord) => record.kind === 'write' || record.kind === 'discard'
  if (cache !== 'honest') {
    const written = records.filter(changes)
    const reached = Math.max(0, written.length - lag.least - random.below(lag.more))
    const isLucky = () => cache === 'lying and reordering' && random.chance(0.5)
    return written.filter((_, index) => index < reached || isLucky())
  }
  const certain = flushedBefore(records)
  const share = random.next()
  return records.filter((record, index) => changes(record) && (index < certain || random.chance(share)))
}

/** Index of the record up to which everything is certain to be on the disk. */
function flushedBefore(records: readonly LogRecord[]): number {
  const begun = new Map<number, number>()
  let certain = 0
  for (const [index, { kind, number }] of records.entries()) {
    if (kind === 'flush-begun') begun.set(number, index)
    if (kind === 'flush-ended') certain = Math.max(certain, begun.get(number) ?? 0)
  }
  return certain
}
