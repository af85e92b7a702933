/** A holder of content that can do without it: the source can read it again. */
interface Holder {
  unload(): void
}

/**
 * Bounds the content that stays in memory between two publications. Published content goes first, the oldest before the newer; other
 * content goes only where that is not enough, and the source has to read it a second time.
 */
export class ContentBudget {
  /** The bytes of each, in the order in which they came. */
  readonly #sizes = new Map<Holder, number>()
  readonly #published = new Set<Holder>()
  #held = 0

  /** @param limit bytes */
  constructor(private readonly limit: number) {}

  holds(holder: Holder, size: number): void {
    this.forget(holder)
    this.#sizes.set(holder, size)
    this.#held += size
    this.#trim()
  }

  published(holder: Holder): void {
    if (this.#sizes.has(holder)) this.#published.add(holder)
  }

  forget(holder: Holder): void {
    this.#held -= this.#sizes.get(holder) ?? 0
    this.#sizes.delete(holder)
    this.#published.delete(holder)
  }

  #trim(): void {
    while (this.#held > this.limit) {
      const [holder] = this.#published.size > 0 ? this.#published : this.#sizes.keys()
      if (holder === undefined) return
      this.forget(holder)
      holder.unload()
    }
  }
}
