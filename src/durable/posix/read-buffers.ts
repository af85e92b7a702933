/** Bytes read at a time: what stays in memory of a file that is compared. */
const pieceSize = 256 * 1024
/** Most files are smaller: their buffers are used again, since a batch reads hundreds. */
const smallSize = 16 * 1024
const keptBuffers = 8

/** Buffers to read files with. They may hold private keys, so they never leave the process, nor does other code share them. */
export class ReadBuffers {
  readonly #free: Buffer[] = []

  /** A buffer larger than a file of this size, so that one read finds its end, as far as a piece allows. */
  take(size: number): Buffer {
    if (size >= smallSize) return Buffer.allocUnsafeSlow(Math.min(pieceSize, size + 1))
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(smallSize)
  }

  giveBack(buffer: Buffer): void {
    if (buffer.length === smallSize && this.#free.length < keptBuffers) this.#free.push(buffer)
  }
}
