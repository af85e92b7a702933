import type { Log } from '../log.js'
import { Exit, exitCodeAfter, exitCodeOf, exitCodes, type EndingSignal } from './words/exit-codes.js'
import type { Io } from './output/io.js'

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs a command's work. The first SIGINT, SIGTERM or SIGHUP aborts `signal`: the work stops where that leaves every target as it
 * was, or finishes, and says which by rejecting or resolving. A rejection then ends the command with 128 + N. The second signal ends
 * the process at once, as if it had never been caught: not even a thread that waits for a dead disk can hold that up.
 */
export async function interruptible<T>({ events, raise }: Io, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  let received: EndingSignal | undefined
  const onSignal = (name: EndingSignal) => {
    received = name
    for (const other of endingSignals) {
      events.removeListener(other, onSignal)
      events.once(other, raise)
    }
    controller.abort()
  }
  for (const name of endingSignals) events.on(name, onSignal)
  try {
    return await work(controller.signal)
  } catch (error) {
    // Unknown durability must be reported, even if a signal ended the command.
    if (received === undefined || exitCodeOf(error) === exitCodes.durabilityUnknown) throw error
    throw new Exit(exitCodeAfter(received))
  } finally {
    for (const name of endingSignals) {
      events.removeListener(name, onSignal)
      events.removeListener(name, raise)
    }
  }
}

/** Waits for the first SIGTERM or SIGINT; the second one ends the process at once, even while it waits for a disk. */
export class Ending {
  readonly signal: Promise<EndingSignal>
  /** As if this signal had come. */
  readonly end: (signal: EndingSignal) => void

  constructor(
    private readonly io: Pick<Io, 'events' | 'raise'>,
    log: Log,
  ) {
    const { events, raise } = io
    let resolve: (signal: EndingSignal) => void = () => {}
    this.signal = new Promise((settle) => (resolve = settle))
    this.end = (signal) => {
      events.removeAllListeners('SIGTERM').removeAllListeners('SIGINT')
      events.once('SIGTERM', raise).once('SIGINT', raise)
      log.info({ signal }, `${signal}: holdfast finishes what is in flight; a second signal ends it at once`)
      resolve(signal)
    }
    events.once('SIGTERM', this.end).once('SIGINT', this.end)
  }

  release(): void {
    const { events, raise } = this.io
    events.removeListener('SIGTERM', raise).removeListener('SIGINT', raise)
  }
}
