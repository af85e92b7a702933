import type { DirectoryState } from './directory-state.js'

interface Running {
  readonly states: readonly DirectoryState[]
  /** By performance.now(). */
  readonly since: number
  readonly timer: NodeJS.Timeout
}

interface RunningOperationsOptions {
  /** Milliseconds after which an operation is reported. */
  timeout(): number
  /** Called once for each directory of an operation that has not ended in time. It goes on: nothing can end it. */
  stalled(state: DirectoryState, milliseconds: number): void
}

/** Which operations work on the disk now, and since when. */
export class RunningOperations {
  readonly #running = new Set<Running>()

  constructor(private readonly options: RunningOperationsOptions) {}

  /** Runs `work` as one operation of these directories. */
  async run<T>(states: readonly DirectoryState[], work: () => Promise<T>): Promise<T> {
    const timeout = this.options.timeout()
    const timer = setTimeout(() => {
      for (const state of states) this.options.stalled(state, timeout)
    }, timeout)
    const running = { states, since: performance.now(), timer }
    this.#running.add(running)
    try {
      return await work()
    } finally {
      clearTimeout(timer)
      this.#running.delete(running)
    }
  }

  /** How long the longest operation of a directory has been running; 0: none is. */
  seconds(state: DirectoryState): number {
    const starts = [...this.#running].filter(({ states }) => states.includes(state)).map(({ since }) => since)
    return starts.length === 0 ? 0 : (performance.now() - Math.min(...starts)) / 1000
  }

  /** The directories whose operations have not ended. */
  directories(): DirectoryState[] {
    return [...new Set([...this.#running].flatMap(({ states }) => states))]
  }

  /** Reports nothing any more. */
  close(): void {
    for (const { timer } of this.#running) clearTimeout(timer)
  }
}
