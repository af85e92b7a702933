/**
 * Tells a slow link from a silent server: limits of time are of silence. A request on a slow link waits for its turn while the answers of
 * others come; a server that sends a byte now and then says nothing.
 */

/** Bytes a second, of all connections together, below which a link counts as silent. */
const leastRate = 1024

/** Milliseconds that a request waits for its own first or next byte, however much comes for others. */
const longestWait = 300_000

export class ReadProgress {
  #own = 0
  #ownAt = performance.now()
  #seen: number
  #seenAt = performance.now()

  /** @param received bytes that have come over all connections so far */
  constructor(private readonly received: () => number) {
    this.#seen = received()
  }

  /** Bytes of the answer so far. */
  get own(): number {
    return this.#own
  }

  came(bytes: number): void {
    this.#own += bytes
    this.#ownAt = performance.now()
  }

  /** Something begins whose time counts from now. */
  begin(): void {
    this.#seen = this.received()
    this.#seenAt = this.#ownAt = performance.now()
  }

  /** Whether the link moved since the last question, or since something began, so that the request may wait on. */
  moved(): boolean {
    const now = performance.now()
    const received = this.received()
    const enough = received - this.#seen >= (leastRate * (now - this.#seenAt)) / 1000
    this.#seen = received
    this.#seenAt = now
    return enough && now - this.#ownAt < longestWait
  }

  /** What to say where too little came. */
  problem(milliseconds: number): string {
    if (this.#own === 0) return `no answer within ${milliseconds} ms`
    return `the answer stopped after ${this.#own} bytes: too little came within ${milliseconds} ms`
  }
}
