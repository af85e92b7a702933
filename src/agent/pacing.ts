import type { DirectoryState } from './directory-state.js'
import type { NewsTimes } from './workqueue.js'

/** Publications of a directory that may follow one another at once, after a pause. */
const burst = 5

/** The publications left of the burst, at a time. */
interface Budget {
  readonly left: number
  readonly at: number
}

/**
 * How often changes of the objects reach the disk and its consumers, as each directory is configured: `debounce`, `minInterval`,
 * `hookInterval`. An operator waits for none of them, and a comparison with the disk only for the debounce, at most a second.
 */
export class Pacing {
  readonly #budgets = new WeakMap<DirectoryState, Budget>()
  /** When each hook began last, by its key: directories share the consumer of a hook that they have in common. */
  readonly #began = new Map<string, number>()

  /** @param now as performance.now() */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Counts a publication; a failed one costs the disk as much. */
  published(state: DirectoryState): void {
    const { left, at } = this.#budget(state)
    const { minInterval } = state.configuration
    const now = this.now()
    const refilled = minInterval === 0 ? burst : Math.min(burst, left + (now - at) / minInterval)
    this.#budgets.set(state, { left: Math.max(0, refilled - 1), at: now })
  }

  /** From when on such news of its objects may be published. */
  publishFrom(state: DirectoryState, times: NewsTimes): number {
    const { left, at } = this.#budget(state)
    return Math.max(this.quietFrom(state, times), at + (1 - left) * state.configuration.minInterval)
  }

  /** From when on such news count as whole. */
  quietFrom({ facts, configuration: { debounce } }: DirectoryState, { first, last }: NewsTimes): number {
    // Consumers wait for the first publication.
    return facts.record ? Math.min(last + debounce.quiet, first + debounce.atMost) : first
  }

  /** The pending hooks of these directories begin together: then they may run together again. */
  hooksBegan(states: readonly DirectoryState[]): void {
    const now = this.now()
    for (const { facts } of states) for (const key of facts.record?.pendingHooks ?? []) this.#began.set(key, now)
  }

  /** From when on the pending hooks of the directory may run for a new publication. */
  hooksFrom({ facts, configuration }: DirectoryState): number {
    const pending = facts.record?.pendingHooks ?? []
    const began = Math.max(-Infinity, ...pending.map((key) => this.#began.get(key) ?? -Infinity))
    return began + configuration.hookInterval
  }

  #budget(state: DirectoryState): Budget {
    return this.#budgets.get(state) ?? { left: burst, at: this.now() }
  }
}
