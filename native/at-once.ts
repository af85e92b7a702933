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
