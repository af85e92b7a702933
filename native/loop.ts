import { AsyncLocalStorage } from 'node:async_hooks'

/*
 * A call on a thread costs the calling thread 20 to 40 µs, and most calls on files take 2 to 10, since the kernel answers from memory. A
 * process with nothing else to do meanwhile makes them at once.
 */

let starting = false

/** Calls that `start` starts before it returns run at once, on this thread: they hold the event loop up, for as long as their disk does. */
export function atOnce<T>(start: () => T): T {
  starting = true
  try {
    return start()
  } finally {
    starting = false
  }
}

/** Whether the call that is being started is to be made at once. */
export function isAtOnce(): boolean {
  return starting
}

/** Lets a number of holders in at a time; the others wait in order. */
export class Semaphore {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(holders: number) {
    this.#free = holders
  }

  async acquire(): Promise<void> {
    await new Promise<void>((resolve) => this.enter(resolve))
  }

  /** Starts a holder of a place, now or once another holder has left. Each holder that starts must leave. */
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

/*
 * Calls that may wait for a disk take a thread of libuv's pool, of which a process has one. A file system that hangs keeps every thread
 * that calls it: so code that works for several gives each a lane, which bounds its threads.
 */

/**
 * Threads that one file system may have at a time: as many as libuv gives a whole program. The pool must be as large as this for
 * each file system that may hang, and for one more.
 * @internal
 */
export const threadsOfLane = 4

const lanes = new AsyncLocalStorage<Lane>()

/*
 * Before Node 24, that a lane is found again after each `await` costs every promise of the process two calls and two properties: a sixth of
 * what a publication takes of the processor. Most nodes keep everything on one file system: as long as there is one lane, what runs is in
 * it, and nothing is tracked.
 */
const made: Lane[] = []
/** Work that was started in the first lane while it was alone, and has not ended. */
let untracked = 0

/** Bounds the calls in flight of all work that runs in it. */
export class Lane extends Semaphore {
  constructor() {
    super(threadsOfLane)
    // Two tell the only lane from one of several; more would stay in memory for ever.
    if (made.length < 2) made.push(this)
  }

  /** Every call that `work` makes, and what follows from it, runs in this lane. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return made.length > 1 ? lanes.run(this, work) : this.#runAlone(work)
  }

  async #runAlone<T>(work: () => Promise<T>): Promise<T> {
    untracked += 1
    try {
      return await work()
    } finally {
      untracked -= 1
    }
  }

  /** The lane of the calling code; undefined: unbounded. A call without a lane while the first lane works untracked counts as its work. */
  static get current(): Lane | undefined {
    return lanes.getStore() ?? (untracked > 0 ? made[0] : undefined)
  }
}

/** What Node calls at the end of a call. */
export type Done<T> = (error: Error | null, value?: T) => void

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
