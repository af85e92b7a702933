/** Milliseconds after a change: changes that come together are written together. */
const settleTime = 150

/** Milliseconds: what changes nothing but dates is written this seldom, since each write costs the disk a flush. */
const heartbeat = 5 * 60_000

export interface StatusWriterOptions {
  /** Writes the status as it is now, durably. */
  write(): Promise<void>
  /** Told of a write that failed; the next change, or the heartbeat, tries again. */
  failed(error: unknown): void
}

/** Decides when the status is written: soon after a change, never two at once, and every five minutes as a sign of life. */
export class StatusWriter {
  readonly #options: StatusWriterOptions
  #soon: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #changed = false
  #closed = false
  readonly #beat: NodeJS.Timeout

  constructor(options: StatusWriterOptions) {
    this.#options = options
    this.#beat = setInterval(() => this.changed(), heartbeat)
  }

  /** Something that a reader would want to know of has changed. */
  changed(): void {
    if (this.#closed) return
    this.#changed = true
    if (this.#writing) return
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      void this.#write()
    }, settleTime)
  }

  /** Writes nothing any more. */
  abandon(): void {
    this.#closed = true
    clearInterval(this.#beat)
    clearTimeout(this.#soon)
  }

  /** Writes a last time; resolves when it is done. */
  async close(): Promise<void> {
    this.abandon()
    await this.#writing
    await this.#write()
  }

  async #write(): Promise<void> {
    this.#changed = false
    this.#beat.refresh()
    this.#writing = this.#options.write().catch((error: unknown) => this.#options.failed(error))
    await this.#writing
    this.#writing = undefined
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- changed() may have been called while it was awaited.
    if (this.#changed) this.changed()
  }
}
