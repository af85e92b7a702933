import type { Pausable } from '../../deadline.js'

/**
 * How many reads may grow large at a time: lines of watches, and bodies of other answers. Watches that start together bring their objects
 * together: 60 Secrets of 1 MiB, each half received, are as much memory as all of them. What waits here is not read, and HTTP/2's flow
 * control stops its sender.
 */
export interface ReadPlace {
  /** The line or the body has so many bytes by now. Rejects with the signal's reason when it aborts before there is a place. */
  grown(size: number): Promise<void>
  /** The line has ended, or the answer. */
  leave(): void
}

export class LargeReads {
  #free: number
  readonly #waiting = new Set<() => void>()

  /** @param threshold bytes: a smaller read takes no place */
  constructor(
    places: number,
    private readonly threshold: number,
  ) {
    this.#free = places
  }

  /**
   * For one body, or for the lines of one stream, one after the other.
   * @param patience the reader's with the server: paused while the read waits here
   */
  place(signal: AbortSignal, patience?: Pausable): ReadPlace {
    let held = false
    return {
      grown: async (size) => {
        if (held || size < this.threshold) return
        await this.#enter(signal, patience)
        held = true
      },
      leave: () => {
        if (held) this.#leave()
        held = false
      },
    }
  }

  async #enter(signal: AbortSignal, patience: Pausable | undefined): Promise<void> {
    signal.throwIfAborted()
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    patience?.pause()
    await new Promise<void>((resolve, reject) => {
      const grant = () => {
        patience?.resume()
        this.#waiting.delete(grant)
        signal.removeEventListener('abort', abandon)
        resolve()
      }
      const abandon = () => {
        this.#waiting.delete(grant)
        reject(signal.reason as Error)
      }
      this.#waiting.add(grant)
      signal.addEventListener('abort', abandon, { once: true })
    })
  }

  #leave(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#free += 1
    else next()
  }
}
