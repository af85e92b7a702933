/** Milliseconds between two looks at the credentials' files, while a request waits for other credentials. */
const lookInterval = 1_000

/** Those who wait for other credentials than the ones that were rejected; there is one look for all of them. */
export class Renewal {
  readonly #waiting = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly differs: () => Promise<boolean>) {}

  /** Resolves when the credentials differ, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener('abort', end)
        this.#waiting.delete(end)
        if (this.#waiting.size === 0) this.#stop()
        resolve()
      }
      signal.addEventListener('abort', end)
      this.#waiting.add(end)
      this.#timer ??= setInterval(() => void this.#look(), lookInterval).unref()
      if (signal.aborted) end()
    })
  }

  async #look(): Promise<void> {
    if (!(await this.differs().catch(() => false))) return
    for (const end of [...this.#waiting]) end()
  }

  #stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
