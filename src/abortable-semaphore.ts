import type { Pausable } from './deadline.js'

/** So many at a time; each further one waits for its place, in the order of coming. */
export class AbortableSemaphore {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(places: number) {
    this.#free = places
  }

  /**
   * Resolves when there is a place, which the caller gives back with `leave`.
   * @param patience paused while it waits
   * @throws the signal's reason when it aborts before
   */
  async enter(signal: AbortSignal, patience?: Pausable): Promise<void> {
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

  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#free += 1
    else next()
  }
}
