import { createHash } from 'node:crypto'
import { DurableWriteError, leftAsItWas } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import type { PublicationOptions } from '../types.js'

/** The calls that read a file. */
export type ContentReader = Pick<FileSystem, 'openContent' | 'attributes' | 'read' | 'close' | 'now'>

export type ReadingOptions = Pick<PublicationOptions, 'signal' | 'progress'>
/** `fs` opens and reads a file of the caller's. */
export type FileReadingOptions = ReadingOptions & { readonly fs: ContentReader }

/**
 * Content that is not in memory. Where the target exists, the publication reads the content twice in pieces, for the digest and for the
 * stage, and fails where the two differ. It writes nothing to a target that is as desired already, and only the first reading tells that.
 */
export abstract class ContentSource {
  #sha256: string | undefined

  constructor(
    /** The publication's, for messages. */
    protected readonly target: string,
    private readonly options: ReadingOptions,
  ) {}

  /** It need not be read before it is staged: the digest has each length before its content, and size() reads nothing. */
  abstract readonly canWait: boolean
  /** Bytes. Comes before pieces(). */
  abstract size(): Promise<number>
  /** As many bytes as size() said, from the first on; each piece is valid until the next. */
  protected abstract read(): AsyncIterable<Uint8Array>
  abstract close(): Promise<void>
  protected abstract readonly origin: string

  /** Hex SHA-256 of the first reading. */
  get sha256(): string {
    if (this.#sha256 === undefined) throw new Error('pieces() comes first')
    return this.#sha256
  }

  /**
   * `readings`: how many there are; each piece of the only one counts twice.
   * @throws DurableWriteError, after the last piece, where they are not those of the first time
   */
  async *pieces(readings: 1 | 2 = 2): AsyncIterable<Uint8Array> {
    const hash = createHash('sha256')
    for await (const piece of this.read()) {
      this.options.signal?.throwIfAborted()
      hash.update(piece)
      yield piece
      this.options.progress?.((piece.length * 2) / readings)
    }
    const sha256 = hash.digest('hex')
    if (this.#sha256 !== undefined && this.#sha256 !== sha256) throw this.changed()
    this.#sha256 = sha256
  }

  protected changed(): DurableWriteError {
    return this.error(`another program changed ${this.origin} while holdfast read it`, {
      code: 'ESTALE',
      advice: 'publish from a file that nobody writes to',
    })
  }

  protected error(
    problem: string,
    details: { code: string; syscall?: string; advice?: string; cause?: unknown },
  ): DurableWriteError {
    return new DurableWriteError(problem, {
      syscall: 'read',
      ...details,
      path: this.origin,
      reason: 'PublishFailed',
      state: leftAsItWas(this.target),
    })
  }
}
