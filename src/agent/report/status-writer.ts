import { retryDelay } from '../../backoff.js'

/** Milliseconds after a change: changes that come together are written together. */
const writeDelay = 150

/** Milliseconds between writes that change dates alone: each write costs the disk a flush. */
const heartbeat = 5 * 60_000

interface StatusWriterOptions {
  /** Writes the changes, durably; `isDue`: a sign of life in any case. Answers whether it wrote one. */
  write(isDue: boolean): Promise<boolean>
  /** Called with a write's error; the write is tried again, after a delay or at the next change. */
  failed(error: unknown): void
}

/** Decides when the status is written: soon after a change, never two at once, and every five minutes as a sign of life. */
export class StatusWriter {
  readonly #options: StatusWriterOptions
  #soon: NodeJS.Timeout | undefined
  /** Failed writes in a row, and the next try. */
  #failures = 0
  #again: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #changed = false
  #isDue = false
  #closed = false
  readonly #beat: NodeJS.Timeout

  constructor(options: StatusWriterOptions) {
    this.#options = options
    this.#beat = setInterval(() => {
      this.#isDue = true
      this.changed()
    }, heartbeat)
  }

  /** The status has changed. */
  changed(): void {
    if (this.#closed) return
    this.#changed = true
    if (this.#writing) return
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      void this.#write()
    }, writeDelay)
  }

  /** Writes nothing any more. */
  abandon(): void {
    this.#closed = true
    clearInterval(this.#beat)
    clearTimeout(this.#soon)
    clearTimeout(this.#again)
  }

  /** Writes a last time; resolves when it is done. */
  async close(): Promise<void> {
    this.abandon()
    await this.#writing
    await this.#write()
  }

  async #write(): Promise<void> {
    this.#changed = false
    const isDue = this.#isDue
    this.#isDue = false
    clearTimeout(this.#again)
    // In a later turn, once the writer counts as busy: its reads may report a change.
    this.#writing = Promise.resolve()
      .then(() => this.#options.write(isDue))
      .then(
        (isSign) => {
          this.#failures = 0
          if (isSign && !this.#closed) this.#beat.refresh()
        },
        (error: unknown) => {
          this.#failures += 1
          this.#isDue ||= isDue
          this.#options.failed(error)
        },
      )
    await this.#writing
    this.#writing = undefined
    if (this.#failures > 0 && !this.#closed) {
      this.#again = setTimeout(() => this.changed(), retryDelay(this.#failures))
    }
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- changed() may have been called while it was awaited.
    if (this.#changed) this.changed()
  }
}
