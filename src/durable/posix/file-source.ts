import { outlast } from '../../change-times.js'
import { adviceOnShortage, isSystemError } from '../../errors.js'
import { type ContentReader, ContentSource, type FileReadingOptions } from '../path/index.js'
import { DurableWriteError } from '../errors.js'
import type { Descriptor } from '../file-system.js'
import { errorAt } from './calls.js'

/** How a file is opened: by its path, or from an open directory through no symbolic link. */
interface FileLocation {
  readonly from: string
  readonly follow?: boolean
  readonly root?: Descriptor
}

/** A regular file, which must not change until the publication has read it. */
export class FileContentSource extends ContentSource {
  readonly canWait = true
  #found: { size: number; fingerprint: string } | undefined
  readonly #fs: ContentReader

  constructor(
    protected readonly origin: string,
    private readonly place: FileLocation,
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
        if (size > (this.#found?.size ?? 0)) break
        yield piece
      }
      await this.#examine(file)
      if (size !== this.#found?.size) throw this.#sizeless()
    } catch (error) {
      throw this.#readable(error)
    } finally {
      await this.#fs.close(file)
    }
  }

  async #open(): Promise<Descriptor> {
    const { from, follow = false, root } = this.place
    let file: Descriptor | undefined
    try {
      file = await this.#fs.openContent(from, follow, root)
      const isFirst = this.#found === undefined
      const changed = await this.#examine(file)
      if (isFirst) await outlast(changed, this.#fs.now())
      return file
    } catch (error) {
      if (file !== undefined) await this.#fs.close(file)
      throw this.#readable(error)
    }
  }

  /** Before and after each reading it must be the same file, unchanged. Answers the time of its last change. */
  async #examine(file: Descriptor): Promise<bigint> {
    const { device, inode, size, changed, type } = await this.#fs.attributes(file)
    // ctime: a program can set the mtime back, and not this.
    const fingerprint = [device, inode, size, changed].join(':')
    if (this.#found !== undefined && this.#found.fingerprint !== fingerprint) throw this.changed()
    if (type !== 'file')
      throw this.error(`${this.origin} is not a regular file`, { code: 'EINVAL', advice: 'name a regular file' })
    this.#found = { size, fingerprint }
    return changed
  }

  /** Nobody has written to it: the kernel, or a file system in user space, makes its content at each reading. */
  #sizeless(): DurableWriteError {
    const problem = `${this.origin} gives other bytes than its size says, ${this.#found?.size ?? 0}: it is made anew at each reading, as in /proc and /sys`
    return this.error(problem, { code: 'EINVAL', advice: 'give its content as bytes, or as a stream' })
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
