/**
 * How many lines may grow long at a time. Watches that start together bring their objects together: 60 Secrets of 1 MiB, each half
 * received, are as much memory as all of them. What waits here is not read, and HTTP/2's flow control stops its sender.
 */
export interface LinePlace {
  /** The line has so many bytes by now. Rejects with the signal's reason when it aborts before there is a place. */
  grown(size: number): Promise<void>
  /** The line has ended, or the stream. */
  leave(): void
}

export class LongLines {
  #free: number
  readonly #waiting = new Set<() => void>()

  /** @param threshold bytes: a shorter line takes no place */
  constructor(
    places: number,
    private readonly threshold: number,
  ) {
    this.#free = places
  }

  /** For the lines of one stream, one after the other. */
  place(signal: AbortSignal): LinePlace {
    let held = false
    return {
      grown: async (size) => {
        if (held || size < this.threshold) return
        await this.#enter(signal)
        held = true
      },
      leave: () => {
        if (held) this.#leave()
        held = false
      },
    }
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const grant = () => {
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
