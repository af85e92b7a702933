/**
 * The time since some moment, in milliseconds, which no user can set back: the same as `performance.now()`, whose first use loads thirteen
 * modules of Node. A command starts too often for that.
 */
export const clock = {
  now(): number {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1000 + nanoseconds / 1e6
  },
}
