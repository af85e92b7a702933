import type { Log } from '../../log.js'

/**
 * Which collections may be listed and watched in one stream (KEP-3157). An API server without the feature refuses it with 400 or 422,
 * and nothing else counts as a refusal: an answer that is late comes from a server that has much to do, and a list for each watch
 * would give it more. A refusal is about one collection, and not for ever: the server may be upgraded.
 */
export class StreamingLists {
  /** performance.now() of the refusal, by the path of the collection. */
  readonly #refused = new Map<string, number>()

  constructor(
    private readonly log: Log,
    /** Milliseconds. */
    private readonly retryAfter: number,
  ) {}

  worthTrying(collection: string): boolean {
    const at = this.#refused.get(collection)
    return at === undefined || performance.now() - at >= this.retryAfter
  }

  refused(collection: string, status: number): void {
    if (!this.#refused.has(collection)) {
      const message = `the API server refuses streaming lists of ${collection} (HTTP ${status}): each watch there starts with a list`
      this.log.info({ collection }, message)
    }
    this.#refused.set(collection, performance.now())
  }
}
