/*
 * A call on a thread costs the thread that asks for it 20 to 40 µs, and most calls on files take 2 to 10, as what they touch is in memory. Who
 * has nothing else to do meanwhile makes them at once.
 */

let starting = false

/** A call that `start` starts before it returns is made at once, on this thread: it holds the event loop up, for as long as its disk does. */
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
