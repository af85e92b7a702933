import { Exit, exitCodeAfter, exitCodeOf, exitCodes, type EndingSignal } from './exit-codes.js'

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs a command's work. The first SIGINT, SIGTERM or SIGHUP aborts `signal`: the work gives up where that leaves every
 * target as it was, or finishes, and tells which by rejecting or resolving. A rejection then ends the command with 128 + N.
 * The second signal ends the process at once, as if it had never been caught: not even a thread that waits for a dead disk
 * can hold that up.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  let received: EndingSignal | undefined
  const onSignal = (name: EndingSignal) => {
    received = name
    for (const other of endingSignals) {
      process.removeListener(other, onSignal)
      process.once(other, reraise)
    }
    controller.abort()
  }
  for (const name of endingSignals) process.on(name, onSignal)
  try {
    return await work(controller.signal)
  } catch (error) {
    // Unknown durability has to be told, whatever ended the command.
    if (received === undefined || exitCodeOf(error) === exitCodes.durabilityUnknown) throw error
    throw new Exit(exitCodeAfter(received))
  } finally {
    for (const name of endingSignals) {
      process.removeListener(name, onSignal)
      process.removeListener(name, reraise)
    }
  }
}

/** Ends this process by the signal's own default action. */
export function reraise(name: NodeJS.Signals): void {
  process.removeAllListeners(name)
  process.kill(process.pid, name)
}
