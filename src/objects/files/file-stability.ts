import { performance } from 'node:perf_hooks'
import type { Moment, Stamp } from './directory-scan.js'

interface Seen {
  readonly stamp: string
  /** performance.now() when the first look at this stamp was over. */
  readonly since: number
  /** performance.now() of the first look that found it changed. */
  readonly changingSince: number
}

/** Whether a file has come to rest: the source must not read a file that a program still writes. */
export class FileStability {
  readonly #seen = new Map<string, Seen>()
  readonly #missing = new Map<string, number>()

  constructor(
    private readonly settle: number,
    private readonly patience: number,
  ) {}

  /**
   * `settled`: its inode has not changed for long enough. `changing`: not yet. `restless`: it has been changing for so long
   * that the others should no longer wait for it. What counts is the time until the look started: on a machine that is slow to
   * finish it, the file may have been written to again.
   */
  state(name: string, stamp: Stamp, startedAt: Moment, now = performance.now()): 'settled' | 'changing' | 'restless' {
    this.#missing.delete(name)
    const before = this.#seen.get(name)
    const since = before?.stamp === stamp.id ? before.since : now
    const changingSince = before?.changingSince ?? now
    // The status-change time cannot be set by hand; but the clock can, so the time between two looks counts as well.
    if (startedAt.wall - stamp.changedAt >= this.settle || startedAt.monotonic - since >= this.settle) {
      this.#seen.delete(name)
      return 'settled'
    }
    this.#seen.set(name, { stamp: stamp.id, since, changingSince })
    return now - changingSince >= this.patience ? 'restless' : 'changing'
  }

  /** Whether a file that is missing now was missing long enough ago already. */
  isGone(name: string, startedAt: Moment, now = performance.now()): boolean {
    const since = this.#missing.get(name) ?? now
    this.#missing.set(name, since)
    return startedAt.monotonic - since >= this.settle
  }

  /** Forgets about files other than these. */
  keepOnly(names: readonly string[]): void {
    const kept = new Set(names)
    for (const name of this.#seen.keys()) if (!kept.has(name)) this.#seen.delete(name)
    this.#missing.clear()
  }
}
