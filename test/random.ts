/** What tests draw at random: numbers from a seed, which gives them again. */
export class Random {
  #state: number

  constructor(readonly seed: number) {
    this.#state = seed >>> 0
  }

  /** Another stream for each purpose, so that one more choice here changes none elsewhere. */
  static for(seed: number, purpose: string): Random {
    let hash = seed >>> 0
    for (const byte of Buffer.from(purpose)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
    return new Random(hash)
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  /** True in this part of all cases. */
  chance(part: number): boolean {
    return this.next() < part
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }

  /** The same items in another order. */
  shuffled<Item>(items: readonly Item[]): Item[] {
    const rest = [...items]
    const order: Item[] = []
    while (rest.length > 0) order.push(...rest.splice(this.below(rest.length), 1))
    return order
  }
}
