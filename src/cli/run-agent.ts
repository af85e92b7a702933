import { Daemon } from '../agent/daemon.js'
import { openSource } from '../agent/open-source.js'
import { disableCoreDumps } from '../durable/index.js'
import type { Log } from '../log.js'
import { Exit, exitCodeAfter, type EndingSignal } from './exit-codes.js'
import { reraise } from './interruptible.js'
import { loadWithFlags, nodeName, type LoadOptions } from './load.js'
import { createLogger, type LogLevel } from './logger.js'
import { version } from './version.js'

/** Runs the agent until a signal ends it. Throws Exit with the signal's code, unless it was an orderly SIGTERM. */
export async function runAgent(options: LoadOptions, level: LogLevel): Promise<void> {
  disableCoreDumps()
  const node = nodeName(options)
  const log = createLogger(level, node === '' ? {} : { node })
  const ending = new Ending(log)
  process.on('uncaughtException', (error) => {
    log.error({ stack: error.stack }, `a fault of holdfast: ${error.message}`)
    process.exit(1)
  })
  // What is asked for while the agent starts is done when it has; once it ends, nothing is read any more.
  const early = { hangUps: 0 }
  let reload = () => void (early.hangUps += 1)
  // Stays to the very end: a SIGHUP that comes late must not end in another way what ends in order.
  process.on('SIGHUP', () => reload())
  const configuration = await loadWithFlags(options)
  const daemon = await Daemon.start({
    configuration,
    load: () => loadWithFlags(options),
    openSource: (source, listener) => openSource(source, listener, { log, version: version() }),
    log,
    version: version(),
    node,
  })
  reload = () => void daemon.reload()
  if (early.hangUps > 0) reload()
  const signal = await ending.signal
  reload = () => {}
  await daemon.stop()
  log.info({ signal }, `ended in order after ${signal}`)
  ending.release()
  if (signal !== 'SIGTERM') throw new Exit(exitCodeAfter(signal))
}

/** Waits for the first SIGTERM or SIGINT; the second one ends the process at once, whatever a disk makes it wait for. */
export class Ending {
  readonly signal: Promise<EndingSignal>

  constructor(log: Log) {
    this.signal = new Promise((resolve) => {
      const end = (signal: 'SIGTERM' | 'SIGINT') => {
        process.removeAllListeners('SIGTERM').removeAllListeners('SIGINT')
        process.once('SIGTERM', reraise).once('SIGINT', reraise)
        log.info({ signal }, `${signal}: finishing what is in flight; a second one ends at once`)
        resolve(signal)
      }
      process.once('SIGTERM', () => end('SIGTERM')).once('SIGINT', () => end('SIGINT'))
    })
  }

  release(): void {
    process.removeListener('SIGTERM', reraise).removeListener('SIGINT', reraise)
  }
}
