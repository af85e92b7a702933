import { constants, promises } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { addAbortSignal, Readable } from 'node:stream'
import { unlessAborted } from '../../deadline.js'
import { codeOf, messageOf } from '../../errors.js'
import { ContentSource, isUnicode, type ReadingOptions } from '../path/index.js'
import { DurableWriteError } from '../errors.js'
import { atPath, ReadBuffers } from './calls.js'

/** So much of a stream stays in memory; it is most often all. */
const mostInMemory = 1024 * 1024
/** The same, where the file system knows no unnamed files. */
const mostWithoutSpool = 64 * 1024 * 1024

/** Not among Node's constants; the same on every architecture that Node runs on but for the bit of O_DIRECTORY. */
const unnamed = 0o20000000 | constants.O_DIRECTORY

const buffers = new ReadBuffers()

/** Streams whose reading has begun: their first bytes are gone. */
const begun = new WeakSet<object>()

/**
 * A stream gives its bytes once: a long one goes to an unnamed file on the target's file system, where the same secrets will be. A crash
 * frees it.
 */
export class StreamSource extends ContentSource {
  readonly canWait = false
  protected readonly origin = 'the stream'
  readonly #chunks: Uint8Array[] = []
  #size = 0
  #spool: FileHandle | undefined

  constructor(
    private readonly stream: AsyncIterable<unknown>,
    private readonly place: string,
    target: string,
    private readonly reading: ReadingOptions,
  ) {
    super(target, reading)
    // It may fail before anything reads it; the reading reports that.
    if (stream instanceof Readable) stream.on('error', () => {})
  }

  async size(): Promise<number> {
    if (begun.has(this.stream) || wasRead(this.stream)) throw this.#usedUp()
    begun.add(this.stream)
    let most = mostInMemory
    for await (const bytes of this.#received()) {
      this.#size += bytes.length
      if (this.#spool === undefined && this.#size > most) {
        this.#spool = await this.#atTarget(openUnnamed(dirname(this.target)))
        most = mostWithoutSpool
        if (this.#spool === undefined && this.#size > most) throw this.#tooLarge()
        if (this.#spool !== undefined) for (const kept of this.#chunks.splice(0)) await this.#keep(this.#spool, kept)
      }
      if (this.#spool === undefined) this.#chunks.push(Uint8Array.from(bytes))
      else await this.#keep(this.#spool, bytes)
    }
    return this.#size
  }

  protected async *read(): AsyncIterable<Uint8Array> {
    if (this.#spool === undefined) yield* this.#chunks
    else yield* piecesOf(this.#spool, this.#size)
  }

  async close(): Promise<void> {
    if (this.stream instanceof Readable) this.stream.destroy()
    await this.#spool?.close()
  }

  #keep(spool: FileHandle, bytes: Uint8Array): Promise<void> {
    // From where it is, to the last byte.
    return this.#atTarget(spool.writeFile(bytes))
  }

  /** The unnamed file has no path: a full disk or a quota is that of the target's directory. */
  #atTarget<T>(calling: Promise<T>): Promise<T> {
    return atPath(() => this.target, calling)
  }

  /** A chunk of text may end between the halves of a surrogate pair. */
  async *#received(): AsyncIterable<Uint8Array> {
    let half = ''
    for await (const chunk of this.#chunksGiven()) {
      const text = typeof chunk === 'string' ? half + chunk : half
      half = typeof chunk === 'string' ? (/[\uD800-\uDBFF]$/.exec(text)?.[0] ?? '') : ''
      const whole = text.slice(0, text.length - half.length)
      if (!isUnicode(whole)) throw this.#halved()
      yield typeof chunk === 'string' ? Buffer.from(whole, 'utf8') : this.#bytesOf(chunk)
    }
    if (half !== '') throw this.#halved()
  }

  /** What the stream fails with is the caller's: the cause of the publication's error. */
  async *#chunksGiven(): AsyncIterable<unknown> {
    const { stream } = this
    const { signal } = this.reading
    try {
      // The wait for a pipe ends with the signal, too.
      if (signal && stream instanceof Readable) yield* addAbortSignal(signal, stream)
      else if (signal) yield* abortable(stream, signal)
      else yield* stream
    } catch (error) {
      if (signal?.aborted || error instanceof DurableWriteError) throw error
      const problem = `the stream of ${this.place} failed: ${messageOf(error)}`
      throw this.error(problem, { code: codeOf(error) ?? 'EIO', cause: error })
    }
  }

  #bytesOf(chunk: unknown): Uint8Array {
    if (chunk instanceof Uint8Array) return chunk
    const problem = `the stream of ${this.place} gave ${chunk === null ? 'null' : typeof chunk}: it must give strings or Uint8Arrays`
    throw this.error(problem, { code: 'EINVAL' })
  }

  #halved(): DurableWriteError {
    const problem = `the content of ${this.place} has half of a surrogate pair, which is not valid text`
    return this.error(problem, { code: 'EINVAL', advice: 'give bytes, or whole characters' })
  }

  #usedUp(): DurableWriteError {
    const problem = `the stream of ${this.place} was read before`
    return this.error(problem, { code: 'EINVAL', advice: 'give each file, and each call, a stream of its own' })
  }

  #tooLarge(): DurableWriteError {
    const problem = `the stream of ${this.place} is larger than ${mostWithoutSpool / 1024 / 1024} MiB, and the file system takes no unnamed file (O_TMPFILE) to keep it in`
    return this.error(problem, { code: 'EFBIG', advice: 'give the content as a path' })
  }
}

/** Of Node's or of the web. Other iterables do not tell. */
function wasRead(stream: AsyncIterable<unknown>): boolean {
  if (stream instanceof Readable) return stream.readableDidRead
  return stream instanceof ReadableStream && Readable.isDisturbed(stream as unknown as Readable)
}

/** Not Readable.from(), which asks a generator for more before the consumer has copied its last buffer, which it may use again. */
async function* abortable(stream: AsyncIterable<unknown>, signal: AbortSignal): AsyncIterable<unknown> {
  const iterator = stream[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await unlessAborted(iterator.next(), signal)
      if (next.done === true) return
      yield next.value
    }
  } finally {
    // A stream that hangs would never answer.
    iterator.return?.().catch(() => undefined)
  }
}

/** The pieces of an open file. */
async function* piecesOf(file: FileHandle, size: number): AsyncIterable<Uint8Array> {
  const buffer = buffers.take(size)
  try {
    for (let position = 0; ;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, position)
      if (bytesRead === 0) return
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    buffers.giveBack(buffer)
  }
}

/** An unnamed file in the nearest directory that exists; undefined where the file system has none. */
async function openUnnamed(directory: string): Promise<FileHandle | undefined> {
  try {
    return await promises.open(directory, constants.O_RDWR | unnamed, 0o600)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' && directory !== '/') return openUnnamed(dirname(directory))
    // EISDIR is the answer of a file system's driver that knows no O_TMPFILE (open(2)); Node says ENOTSUP for EOPNOTSUPP.
    if (code === 'ENOTSUP' || code === 'EISDIR' || code === 'EINVAL') return undefined
    throw error
  }
}
