import type { Stamp } from './look.js'

interface Seen {
  readonly stamp: string
  /** performance.now() of the first look at this stamp. */
  readonly since: number
  /** performance.now() of the first look that found it changed. */
  readonly changingSince: number
}

/** Tells whether a file has come to rest: one that is still being written must not be read. */
export class Settling {
  readonly #seen = new Map<string, Seen>()
  readonly #missing = new Map<string, number>()

  constructor(
    private readonly settle: number,
    private readonly patience: number,
  ) {}

  /**
   * `settled`: its inode has not changed for long enough. `changing`: not yet. `restless`: it has been changing for so long
   * that the others should no longer wait for it.
   */
  state(name: string, stamp: Stamp, now: number): 'settled' | 'changing' | 'restless' {
    this.#missing.delete(name)
    const before = this.#seen.get(name)
    const since = before?.stamp === stamp.id ? before.since : now
    const changingSince = before?.changingSince ?? now
    // The status-change time cannot be set by hand; but the clock can, so the time between two looks counts as well.
    if (Date.now() - stamp.changedAt >= this.settle || now - since >= this.settle) {
      this.#seen.delete(name)
      return 'settled'
    }
    this.#seen.set(name, { stamp: stamp.id, since, changingSince })
    return now - changingSince >= this.patience ? 'restless' : 'changing'
  }

  /** Whether a file that is missing now was missing long enough ago already. */
  isGone(name: string, now: number): boolean {
    const since = this.#missing.get(name) ?? now
    this.#missing.set(name, since)
    return now - since >= this.settle
  }

  /** Forgets about files other than these. */
  keepOnly(names: readonly string[]): void {
    const kept = new Set(names)
    for (const name of this.#seen.keys()) if (!kept.has(name)) this.#seen.delete(name)
    this.#missing.clear()
  }
}
