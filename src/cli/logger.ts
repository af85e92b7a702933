import { createRequire } from 'node:module'
import { writeSync } from 'node:fs'
import type { pino } from 'pino'
import type { Log } from '../log.js'
import { painter, wantsColour } from './colour.js'
import { readableLine } from './readable-log.js'

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/**
 * Logs to standard error: JSON lines, or readable ones on a terminal. Each line is written before the call returns: a
 * worker thread would cost 18 MB on every node, and lose the last lines of a crash. A standard error that is gone is not a
 * reason to fail.
 */
export function createLogger(level: LogLevel, fields: Readonly<Record<string, string>> = {}): Log {
  // Loaded with the first line, so that a command which has nothing to say starts sooner.
  let loaded: Log | undefined
  const logger = (): Log => (loaded ??= load(level, fields))
  return {
    debug: (details, message) => logger().debug(details, message),
    info: (details, message) => logger().info(details, message),
    warn: (details, message) => logger().warn(details, message),
    error: (details, message) => logger().error(details, message),
  }
}

/** What is to be told must be told even where no file can be opened any more, so that pino cannot be loaded. */
function load(level: LogLevel, fields: Readonly<Record<string, string>>): Log {
  try {
    return loadPino(level, fields)
  } catch {
    return plainLog(level, fields)
  }
}

function plainLog(level: LogLevel, fields: Readonly<Record<string, string>>): Log {
  const write = (label: keyof Log) => (details: object, message: string) => {
    if (logLevels.indexOf(label) < logLevels.indexOf(level)) return
    const time = new Date().toISOString()
    writeToStandardError(`${JSON.stringify({ level: label, time, ...fields, ...details, msg: message })}\n`)
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

function loadPino(level: LogLevel, fields: Readonly<Record<string, string>>): pino.Logger {
  const create = createRequire(import.meta.url)('pino') as typeof pino
  const readable = process.stderr.isTTY
  const paint = painter(wantsColour(process.stderr))
  const destination = {
    write: (line: string) => writeToStandardError(readable ? readableLine(line, paint) : line),
  }
  const options: pino.LoggerOptions = {
    level,
    base: fields,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
  }
  return create(options, destination)
}

/** How long a full pipe may hold a line up, in milliseconds, before the rest of it is dropped. */
const patience = 200
const pause = new Int32Array(new SharedArrayBuffer(4))

function writeToStandardError(line: string): void {
  let rest = Buffer.from(line)
  const deadline = performance.now() + patience
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(2, rest))
    } catch (error) {
      const full = error instanceof Error && 'code' in error && error.code === 'EAGAIN'
      if (!full || performance.now() > deadline) return
      Atomics.wait(pause, 0, 0, 5)
    }
  }
}
