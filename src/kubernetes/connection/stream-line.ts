/**
 * One line, which can be read once. A generator that waits for the next line keeps what its variables hold, and so does its reader: a
 * watch of a Secret of 1 MiB would keep another 1.4 MiB for as long as nothing happens.
 */
export class StreamLine {
  #pieces: Buffer[]

  constructor(pieces: Buffer[]) {
    this.#pieces = pieces
  }

  get empty(): boolean {
    return this.#pieces.every(({ length }) => length === 0)
  }

  take(): string {
    const text = Buffer.concat(this.#pieces).toString()
    this.#pieces = []
    return text
  }
}
