/** So many requests in a second, and so many at once after a pause, as in client-go's flowcontrol. */
export interface RateLimit {
  /** Requests a second, on average. */
  readonly qps: number
  /** Requests at once, after a pause. */
  readonly burst: number
}

/** Tokens for requests, given in the order of the calls. */
export class TokenBucket {
  /** Below 0: so many are promised to those who wait. */
  #tokens: number
  #at = performance.now()
  readonly #waiting = new Set<() => void>()
  #closed = false

  constructor(private readonly limit: RateLimit) {
    this.#tokens = limit.burst
  }

  /**
   * Resolves when a request may be sent, with the seconds that it had to wait.
   * @throws the signal's reason when it aborts before; its token goes back
   */
  async take(signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted()
    this.#refill()
    this.#tokens -= 1
    if (this.#tokens >= 0 || this.#closed) return 0
    const started = performance.now()
    await this.#wait((-this.#tokens / this.limit.qps) * 1000, signal)
    if (signal?.aborted) {
      this.#tokens += 1
      throw signal.reason as Error
    }
    return (performance.now() - started) / 1000
  }

  /** Ends every wait. */
  close(): void {
    this.#closed = true
    for (const end of [...this.#waiting]) end()
  }

  #refill(): void {
    const { qps, burst } = this.limit
    const now = performance.now()
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) / 1000) * qps)
    this.#at = now
  }

  #wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        this.#waiting.delete(end)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, milliseconds)
      this.#waiting.add(end)
      signal?.addEventListener('abort', end)
    })
  }
}
