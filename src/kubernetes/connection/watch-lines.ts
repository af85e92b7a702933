/** The lines of a watch, as its stream brings them. */
import type { LargeReads, ReadPlace } from './large-reads.js'
import { StreamLine, type LinePatience } from './client.js'
import type { ReadProgress } from './progress.js'
import { bodyError, explain, refuseBroken } from './response-body.js'
import type { HttpResponse } from './transport.js'

type TakeLine = (line: StreamLine) => Promise<void>

interface LineOptions {
  /** Bytes of a line. */
  readonly limit: number
  /** The request, for messages. */
  readonly what: string
  readonly signal: AbortSignal
  readonly largeReads: LargeReads
  /** The reader's with the server: it does not run while a line waits for its place. */
  readonly patience?: LinePatience | undefined
  readonly progress: ReadProgress
}

/**
 * Hands each line of a stream, without its newline, to `take`, and waits for it before the next one: the stream is paused meanwhile.
 * Resolves when the server ends the stream in order. Rejects with ConnectionError when it breaks, for a line beyond the limit, and for
 * half a line at the end; with the signal's reason; with the error of `take`. No `take` is running any more then.
 *
 * It listens to the stream: an iterator over one, with the generators on top of it, keeps 4 KiB for each watch that has nothing to say.
 */
export async function takeLines(
  { body, broken }: Pick<HttpResponse, 'body' | 'broken'>,
  { limit, what, signal, largeReads, patience, progress }: LineOptions,
  take: TakeLine,
): Promise<void> {
  const lines = new Lines(limit, what, largeReads.place(signal, patience), take)
  let taking: Promise<void> | undefined
  let isTaking = false
  const takeAll = async (): Promise<void> => {
    // All that has come since, in one piece: frames of one byte each would keep everything else waiting.
    for (let chunk = readChunk(body); chunk !== null; chunk = readChunk(body)) {
      progress.came(chunk.length)
      await lines.add(chunk)
      patience?.came(lines.unfinished)
      await new Promise(setImmediate)
    }
  }
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (error: unknown): void => reject(explain({ broken }, what, signal, error))
      const cut = (): void => fail(body.errored ?? new Error('the stream was closed before its end'))
      // It may end while its last lines are being taken.
      body.once('end', () => resolve(taking))
      body.once('error', fail)
      body.once('close', cut)
      body.on('readable', () => {
        if (isTaking) return
        isTaking = true
        taking = takeAll().finally(() => (isTaking = false))
        taking.catch(reject)
      })
      // An event that fired before these listeners came does not fire again.
      if (body.readableEnded) resolve()
      else if (body.destroyed) cut()
    })
    refuseBroken({ broken })
    lines.end()
  } catch (error) {
    body.destroy()
    await taking?.catch(() => undefined)
    throw error
  } finally {
    lines.leave()
  }
}

const readChunk = (body: HttpResponse['body']): Buffer | null => body.read() as Buffer | null

const newline = 10

/** Pieces of fewer bytes are joined as they come: each costs more than it holds. */
const smallPiece = 4096

class Lines {
  /** Pieces of the line that has not ended yet. */
  #started: Buffer[] = []
  #size = 0

  constructor(
    private readonly limit: number,
    private readonly what: string,
    private readonly place: ReadPlace,
    private readonly take: TakeLine,
  ) {}

  async add(chunk: Buffer): Promise<void> {
    let start = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#grow(chunk.subarray(start, end))
      const line = new StreamLine(this.#started)
      this.#started = []
      this.#size = 0
      this.place.leave()
      start = end + 1
      if (!line.empty) await this.take(line)
    }
    if (start === chunk.length) return
    this.#grow(chunk.subarray(start))
    await this.place.grown(this.#size)
  }

  #grow(piece: Buffer): void {
    this.#size += piece.length
    if (this.#size > this.limit) throw bodyError(this.what, `a line is longer than ${this.limit} bytes`)
    const last = this.#started.at(-1)
    if (last !== undefined && last.length + piece.length < smallPiece) {
      this.#started[this.#started.length - 1] = Buffer.concat([last, piece])
    } else this.#started.push(piece)
  }

  get unfinished(): boolean {
    return this.#size > 0
  }

  /** The stream has ended. */
  end(): void {
    if (this.#size > 0) throw bodyError(this.what, 'the stream ended in the middle of a line')
  }

  leave(): void {
    this.place.leave()
  }
}
