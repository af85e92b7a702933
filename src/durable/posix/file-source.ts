import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { adviceOnShortage, isSystemError } from '../../errors.js'
import { ContentSource, type ReadingOptions } from '../content-source.js'
import { DurableWriteError } from '../errors.js'
import { errorAt } from './calls.js'
import { ReadBuffers } from './read-buffers.js'

const buffers = new ReadBuffers()

/** The pieces of an open file. */
export async function* piecesOf(file: FileHandle, size: number): AsyncIterable<Uint8Array> {
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

/** A regular file, which nobody may write to until the publication has read it. */
export class FileSource extends ContentSource {
  #found: { size: number; fingerprint: string } | undefined

  constructor(
    protected readonly origin: string,
    private readonly follow: boolean,
    target: string,
    options: ReadingOptions,
  ) {
    super(target, options)
  }

  async size(): Promise<number> {
    const file = await this.#open()
    await file.close()
    return this.#found?.size ?? 0
  }

  protected async *read(): AsyncIterable<Uint8Array> {
    const file = await this.#open()
    try {
      let size = 0
      for await (const piece of piecesOf(file, this.#found?.size ?? 0)) {
        size += piece.length
        // One that grows without an end is not read to it.
        if (size > (this.#found?.size ?? 0)) throw this.changed()
        yield piece
      }
      if (size !== this.#found?.size) throw this.changed()
      await this.#examine(file)
    } catch (error) {
      throw this.#readable(error)
    } finally {
      await file.close()
    }
  }

  async #open(): Promise<FileHandle> {
    // O_NONBLOCK: a pipe that took the file's place does not hold us up.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | (this.follow ? 0 : constants.O_NOFOLLOW)
    let file: FileHandle | undefined
    try {
      file = await open(this.origin, flags)
      await this.#examine(file)
      return file
    } catch (error) {
      await file?.close()
      throw this.#readable(error)
    }
  }

  /** Before and after each reading it must be the same file, unchanged. */
  async #examine(file: FileHandle): Promise<void> {
    const { dev, ino, size, mtimeNs, ctimeNs, ...status } = await file.stat({ bigint: true })
    // ctime in nanoseconds: a program can set the mtime back, and not this.
    const fingerprint = [dev, ino, size, mtimeNs, ctimeNs].join(':')
    if (this.#found !== undefined && this.#found.fingerprint !== fingerprint) throw this.changed()
    if ((Number(status.mode) & constants.S_IFMT) !== constants.S_IFREG)
      throw this.error(`${this.origin} is not a regular file`, { code: 'EINVAL', advice: 'name a regular file' })
    this.#found = { size: Number(size), fingerprint }
  }

  #readable(error: unknown): unknown {
    if (error instanceof DurableWriteError || !isSystemError(error)) return error
    errorAt(this.origin, error)
    const { code, syscall } = error
    // It was there when its size was asked for.
    if (code === 'ENOENT' && this.#found !== undefined) return this.changed()
    const problem = `could not read the content of ${this.target}: ${syscall} ${this.origin}: ${code}`
    return this.error(problem, {
      code,
      syscall,
      advice: adviceOnShortage(code) ?? 'name a regular file that this process may read',
      cause: error,
    })
  }

  async close(): Promise<void> {
    // Each reading opens and closes it: there may be thousands.
  }
}
