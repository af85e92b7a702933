import type { Pausable } from '../../deadline.js'
import { AbortableSemaphore } from '../../abortable-semaphore.js'

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
  readonly #places: AbortableSemaphore

  /** @param threshold bytes: a smaller read takes no place */
  constructor(
    places: number,
    private readonly threshold: number,
  ) {
    this.#places = new AbortableSemaphore(places)
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
        await this.#places.enter(signal, patience)
        held = true
      },
      leave: () => {
        if (held) this.#places.leave()
        held = false
      },
    }
  }
}
