/*
 * A call on a thread of libuv's pool takes twenty to forty microseconds more than the call itself: two threads wake each other. A program
 * that has nothing else to do meanwhile, as a command that publishes one directory, makes its calls on its own thread instead. An agent
 * never does: a disk that hangs would stop all that it serves.
 */

/** Milliseconds after which signals and timers have their turn: an interrupt is seen between two calls. */
const turnAfter = 10

let users = 0
let turnedAt = 0

/** While `work` runs, calls that may wait for a disk are made on this thread. Not for a process that serves anybody. */
export async function onThisThread<T>(work: () => Promise<T>): Promise<T> {
  users += 1
  turnedAt = performance.now()
  try {
    return await work()
  } finally {
    users -= 1
  }
}

/** Whether calls are made on this thread now. */
export function isOnThisThread(): boolean {
  return users > 0
}

/** Starts the next call: at once, or, on this thread, after a turn of the event loop where the last one is long ago. */
export function inTurn(start: () => void): void {
  if (users === 0 || performance.now() - turnedAt < turnAfter) start()
  else {
    setImmediate(() => {
      turnedAt = performance.now()
      start()
    })
  }
}
