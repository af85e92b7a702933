/** The longest time, in milliseconds, that a timer of Node takes; a longer one would fire at once. */
export const longestTimeout = 2 ** 31 - 1

/** A limit of time that the work can stop while it waits for something that the limit is not about. */
export interface Pausable {
  pause(): void
  resume(): void
}

/** Calls back when it has run for so many milliseconds in all: it runs from the start, and between `resume` and `pause`. */
export class PausableTimer implements Pausable {
  #timer: NodeJS.Timeout | undefined
  #since = 0
  #left: number

  constructor(
    private readonly milliseconds: number,
    private readonly over: () => void,
  ) {
    this.#left = Math.min(milliseconds, longestTimeout)
    this.resume()
  }

  /** Counts the whole time again. */
  restart(): void {
    this.pause()
    this.#left = Math.min(this.milliseconds, longestTimeout)
    this.resume()
  }

  resume(): void {
    if (this.#timer !== undefined) return
    this.#since = performance.now()
    this.#timer = setTimeout(this.over, this.#left)
  }

  pause(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#left -= performance.now() - this.#since
  }
}

/**
 * One signal for a piece of work: it aborts when the caller's signal does, with the caller's reason, or with `error()` after
 * `milliseconds`, unless `met` or `dispose` was called before; if `goesOn` answers true then, the time counts again. A caller that hands
 * over its controller instead has it aborted then, and there is no other signal.
 *
 * The timer holds the controller. A signal made by `AbortSignal.any([signal, AbortSignal.timeout(n)])` does not: on Node 20 the
 * anonymous timeout is lost at the next garbage collection, and the work then hangs for ever.
 */
export class Deadline implements Pausable {
  readonly #controller: AbortController
  readonly #outer: AbortSignal | undefined
  readonly #timer: PausableTimer
  readonly #forward: () => void
  #expired = false
  #met = false

  constructor(
    readonly milliseconds: number,
    caller: AbortSignal | AbortController | undefined,
    error: () => Error = () => new DOMException('The operation was aborted due to timeout', 'TimeoutError'),
    goesOn: () => boolean = () => false,
  ) {
    this.#controller = caller instanceof AbortController ? caller : new AbortController()
    const outer = caller instanceof AbortController ? undefined : caller
    this.#outer = outer
    this.#forward = () => this.#controller.abort(outer?.reason)
    this.#timer = new PausableTimer(milliseconds, () => {
      if (this.#controller.signal.aborted) return
      if (goesOn()) {
        this.#timer.restart()
        return
      }
      this.#expired = true
      this.#controller.abort(error())
    })
    if (outer?.aborted) this.#forward()
    else outer?.addEventListener('abort', this.#forward, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The time was over before the caller's signal aborted. */
  get expired(): boolean {
    return this.#expired
  }

  /** The work has met its limit; the caller's signal still counts. */
  met(): void {
    this.#met = true
    this.pause()
  }

  pause(): void {
    this.#timer.pause()
  }

  resume(): void {
    if (!this.#met) this.#timer.resume()
  }

  /** Forgets the caller's signal too. */
  dispose(): void {
    this.met()
    this.#outer?.removeEventListener('abort', this.#forward)
  }
}

/** Waits for the promise no longer than the signal allows; the promise itself goes on. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // No caller waits for it any more, so its failure would be unhandled.
    promise.catch(() => undefined)
    throw signal.reason as Error
  }
  let stop: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    if (stop) signal.removeEventListener('abort', stop)
  }
}

interface SleepOptions {
  readonly signal?: AbortSignal | undefined
  /** false: the process may end meanwhile. */
  readonly ref?: boolean
}

/** Node's own, in `timers/promises`, takes two milliseconds to load. @throws the signal's reason when it aborts */
export function sleep(milliseconds: number, { signal, ref = true }: SleepOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, milliseconds)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    if (!ref) timer.unref()
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** Whether the promise has settled within so many milliseconds; it goes on. */
export async function endsWithin(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), milliseconds)))
  const ended = promise.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([ended, late])
  } finally {
    clearTimeout(timer)
  }
}
