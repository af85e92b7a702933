import type { Log } from '../log.js'

/** What may fail without anything being lost: it is logged, and left to the next run. */
export async function attempt(
  log: Log,
  path: string,
  message: string,
  task: () => Promise<void> | undefined,
): Promise<void> {
  try {
    await task()
  } catch (error) {
    log.warn({ path, error: String(error) }, `${message}; the next run tries again`)
  }
}
