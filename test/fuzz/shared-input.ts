/** The input that a thread is busy with, in memory that outlives the thread: what ends it, or keeps it for ever, is known. */
const head = 8

export class SharedInput {
  readonly #numbers: Int32Array
  readonly #bytes: Uint8Array

  constructor(memory: SharedArrayBuffer) {
    this.#numbers = new Int32Array(memory, 0, 2)
    this.#bytes = new Uint8Array(memory, head)
  }

  /** For inputs of so many bytes. */
  static memoryFor(longest: number): SharedArrayBuffer {
    return new SharedArrayBuffer(head + longest)
  }

  put(input: Uint8Array): void {
    this.#bytes.set(input.subarray(0, this.#bytes.length))
    Atomics.store(this.#numbers, 1, input.length)
    Atomics.add(this.#numbers, 0, 1)
  }

  /** How many inputs have been put. */
  get count(): number {
    return Atomics.load(this.#numbers, 0)
  }

  get(): Buffer {
    return Buffer.from(this.#bytes.slice(0, Atomics.load(this.#numbers, 1)))
  }
}
