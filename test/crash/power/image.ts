/** Rebuilds a disk, as a sparse file, in the states that a log allows. The file is rewritten as a whole for each. */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import type { LogRecord } from '../../disk/write-log.js'
import { sectorBytes, type CrashState } from './cuts.js'

const chunk = 1 << 16
const zeros = Buffer.alloc(chunk)

export class Image {
  readonly #bytes: Buffer
  /** Numbers of the chunks that have ever been written; the rest are zeros. */
  readonly #written = new Set<number>()
  readonly #file: number
  #records: readonly LogRecord[]
  #certain = 0

  constructor(
    readonly path: string,
    readonly size: number,
    records: readonly LogRecord[],
  ) {
    this.#records = records
    this.#bytes = Buffer.alloc(size)
    this.#file = openSync(path, 'r+')
  }

  close(): void {
    closeSync(this.#file)
  }

  /** All the records so far are on the disk; these follow. */
  continueWith(records: readonly LogRecord[]): void {
    for (; this.#certain < this.#records.length; this.#certain++) this.#keep(this.#records[this.#certain])
    this.#records = records
    this.#certain = 0
  }

  /** Makes the file what the disk would hold; states come in the order of the log. */
  become({ certain, lucky, sectors }: Pick<CrashState, 'certain' | 'lucky' | 'sectors'>): void {
    for (; this.#certain < certain; this.#certain++) this.#keep(this.#records[this.#certain])
    ftruncateSync(this.#file, 0)
    ftruncateSync(this.#file, this.size)
    for (const [start, end] of this.#runs()) this.#write(this.#bytes.subarray(start, end), start)
    lucky.forEach((index, position) => {
      const record = this.#records[index]
      if (!record) return
      const isTorn = sectors !== undefined && position === lucky.length - 1
      const length = isTorn ? sectors * sectorBytes : record.length
      const data = record.kind === 'write' ? record.data.subarray(0, length) : Buffer.alloc(length)
      this.#write(data, record.offset)
    })
  }

  #keep(record: LogRecord | undefined): void {
    if (record?.kind === 'discard') this.#bytes.fill(0, record.offset, record.offset + record.length)
    if (record?.kind !== 'write') return
    record.data.copy(this.#bytes, record.offset)
    const last = Math.floor((record.offset + record.length - 1) / chunk)
    for (let number = Math.floor(record.offset / chunk); number <= last; number++) this.#add(number)
  }

  /** Zeroes, as in most of a new journal, need no place in the file. */
  #add(number: number): void {
    if (this.#written.has(number)) return
    const bytes = this.#bytes.subarray(number * chunk, (number + 1) * chunk)
    if (!bytes.equals(zeros.subarray(0, bytes.length))) this.#written.add(number)
  }

  *#runs(): Generator<[number, number]> {
    let start = -1
    let end = -1
    for (const number of [...this.#written].sort((a, b) => a - b)) {
      if (number * chunk !== end) {
        if (end > start) yield [start, end]
        start = number * chunk
      }
      end = Math.min((number + 1) * chunk, this.size)
    }
    if (end > start) yield [start, end]
  }

  #write(bytes: Uint8Array, at: number): void {
    for (let done = 0; done < bytes.length;) {
      done += writeSync(this.#file, bytes, done, bytes.length - done, at + done)
    }
  }
}
