import { adviceOnShortage, isSystemError } from '../../errors.js'
import { type ContentReader, ContentSource, type FileReadingOptions } from '../path/index.js'
import { DurableWriteError } from '../errors.js'
import type { Descriptor } from '../file-system.js'
import { errorAt } from './calls.js'

/** A regular file, which must not change until the publication has read it. */
export class FileSource extends ContentSource {
  readonly canWait = true
  #found: { size: number; fingerprint: string } | undefined
  readonly #fs: ContentReader

  constructor(
    protected readonly origin: string,
    private readonly follow: boolean,
    target: string,
    options: FileReadingOptions,
  ) {
    super(target, options)
    this.#fs = options.fs
  }

  async size(): Promise<number> {
    const file = await this.#open()
    await this.#fs.close(file)
    return this.#found?.size ?? 0
  }

  protected async *read(): AsyncIterable<Uint8Array> {
    const file = await this.#open()
    try {
      let size = 0
      for await (const piece of this.#fs.read(file, this.#found?.size ?? 0)) {
        size += piece.length
        // A file that grows without an end would be read without an end.
        if (size > (this.#found?.size ?? 0)) throw this.changed()
        yield piece
      }
      if (size !== this.#found?.size) throw this.changed()
      await this.#examine(file)
    } catch (error) {
      throw this.#readable(error)
    } finally {
      await this.#fs.close(file)
    }
  }

  async #open(): Promise<Descriptor> {
    let file: Descriptor | undefined
    try {
      file = await this.#fs.openContent(this.origin, this.follow)
      await this.#examine(file)
      return file
    } catch (error) {
      if (file !== undefined) await this.#fs.close(file)
      throw this.#readable(error)
    }
  }

  /** Before and after each reading it must be the same file, unchanged. */
  async #examine(file: Descriptor): Promise<void> {
    const { device, inode, size, changed, type } = await this.#fs.attributes(file)
    // ctime: a program can set the mtime back, and not this.
    const fingerprint = [device, inode, size, changed].join(':')
    if (this.#found !== undefined && this.#found.fingerprint !== fingerprint) throw this.changed()
    if (type !== 'file')
      throw this.error(`${this.origin} is not a regular file`, { code: 'EINVAL', advice: 'name a regular file' })
    this.#found = { size, fingerprint }
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
