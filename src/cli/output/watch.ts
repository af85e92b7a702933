import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../log.js'

/** Milliseconds. No event says that a process was killed, or how much time has passed. */
const heartbeat = 10_000

/**
 * Shows something again at each change of a file in this directory, until `show` answers that no reader is left. One showing at a time:
 * a change meanwhile shows next. Rejects with the error of `show`, and with the signal's reason.
 */
export async function showChanges(
  directory: string,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
  show: () => Promise<'shown' | 'unseen'>,
): Promise<void> {
  const { DirectoryWatch } = await import('../../directory-watch.js')
  let waking = new AbortController()
  const wake = () => waking.abort()
  signal.addEventListener('abort', wake)
  const watch = new DirectoryWatch(directory, wake, log)
  try {
    for (;;) {
      waking = new AbortController()
      // Before the look: a change during it wakes the next wait.
      await watch.arm()
      if ((await show()) === 'unseen') return
      signal.throwIfAborted()
      await delay(heartbeat, undefined, { signal: waking.signal }).catch(() => undefined)
      signal.throwIfAborted()
    }
  } finally {
    signal.removeEventListener('abort', wake)
    watch.close()
  }
}
