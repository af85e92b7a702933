import { ConnectionError } from './client.js'

/**
 * One signal for a request: it aborts when the caller's signal does, with the caller's reason, or with a
 * ConnectionError 'timeout' after `milliseconds`, unless `met` was called before.
 */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #forward: () => void

  constructor(
    what: string,
    milliseconds: number,
    private readonly outer: AbortSignal | undefined,
  ) {
    this.#forward = () => this.#controller.abort(outer?.reason)
    this.#timer = setTimeout(() => {
      this.#controller.abort(new ConnectionError(`${what}: no answer within ${milliseconds} ms`, 'timeout'))
    }, milliseconds)
    if (outer?.aborted) this.#forward()
    else outer?.addEventListener('abort', this.#forward, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The time limit is kept; the caller's signal still counts. */
  met(): void {
    clearTimeout(this.#timer)
  }

  /** Forgets the caller's signal too. */
  dispose(): void {
    this.met()
    this.outer?.removeEventListener('abort', this.#forward)
  }
}

/** Waits for the promise no longer than the signal allows; the promise itself goes on. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // Nobody waits for it any more, so that nobody else would take its failure.
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
