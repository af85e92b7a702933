import { AsyncLocalStorage } from 'node:async_hooks'

/*
 * Calls that may wait for a disk take a thread of libuv's pool, of which a process has one. A file system that hangs keeps every
 * thread that it was given: so those who work for several give each a lane, which bounds what it can keep.
 */

/**
 * Threads that one file system may have at a time: as many as libuv gives a whole program. The pool must be as large as this for
 * each file system that may hang, and for one more.
 * @internal
 */
export const threadsOfLane = 4

const lanes = new AsyncLocalStorage<Lane>()

/** Bounds the calls in flight of all work that runs in it. */
export class Lane {
  #free = threadsOfLane
  readonly #waiting: (() => void)[] = []

  /** Every call that `work` makes, and what follows from it, runs in this lane. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return lanes.run(this, work)
  }

  /** The lane of the code that asks; undefined: nobody has bounded it. */
  static get current(): Lane | undefined {
    return lanes.getStore()
  }

  /** Starts a call, now or once another has left. Each that starts must leave. */
  enter(start: () => void): void {
    if (this.#free > 0) {
      this.#free -= 1
      start()
    } else this.#waiting.push(start)
  }

  leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#free += 1
  }
}

/** What Node calls at the end of a call. */
type Done<T> = (error: Error | null, value?: T) => void

/** Starts a call of node:fs in the lane of the code that asks. `start` is given what the call ends with. */
export function startInLane<T>(start: (done: Done<T>) => void, done: Done<T>): void {
  const lane = Lane.current
  if (lane === undefined) start(done)
  else {
    lane.enter(() =>
      start((error, value) => {
        lane.leave()
        done(error, value)
      }),
    )
  }
}
