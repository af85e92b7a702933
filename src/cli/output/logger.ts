import type { pino } from 'pino'
import type { Log } from '../../log.js'
import { escaped } from '../../message-text.js'
import { painter, wantsColour, type Paint } from './colour.js'
import type { Io, Output } from './io.js'
import { clearProgress } from './progress.js'

/** The path of pino in the package, beside its program: only the build of the package sets it. */
declare const bundledPino: string | undefined

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
type LogLevel = (typeof logLevels)[number]

/** `auto`: text on a terminal, JSON lines elsewhere. */
export const logFormats = ['auto', 'json', 'text'] as const
export type LogFormat = (typeof logFormats)[number]

export interface LogFlags {
  readonly logLevel: LogLevel
  readonly logFormat: LogFormat
}

/**
 * Logs to standard error: JSON lines, or readable ones. Each line is written before the call returns: a
 * worker thread would cost 18 MB on every node, and lose the last lines of a crash. A standard error that is gone is not a
 * reason to fail.
 */
export function createLogger(io: Io, options: LogFlags, fields: Readonly<Record<string, string>> = {}): Log {
  const destination = destinationFor(io, options.logFormat)
  const least = logLevels.indexOf(options.logLevel)
  // Loaded for the first line that is written, so that a command which has nothing to say starts sooner.
  let loaded: Log | undefined
  const logger = (): Log => {
    try {
      return (loaded ??= loadPino(destination, options.logLevel, fields))
    } catch {
      return plainLog(destination, fields)
    }
  }
  const write = (level: keyof Log) => (details: object, message: string) => {
    if (logLevels.indexOf(level) >= least) logger()[level](details, message)
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** An error must be reported even where no file can be opened any more, so that pino cannot be loaded: the next line tries again. */
function plainLog(destination: Destination, fields: Readonly<Record<string, string>>): Log {
  const write = (level: keyof Log) => (details: object, message: string) => {
    const line = { level, time: new Date().toISOString(), ...fields, ...details, msg: message }
    destination.write(`${JSON.stringify(line, serializable)}\n`)
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** A number of an inode or of nanoseconds, which JSON would refuse, is no reason to fail either. */
function serializable(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

type Destination = Pick<Output, 'write'>

/** Takes lines of JSON. */
function destinationFor({ stderr, env }: Io, format: LogFormat): Destination {
  const write = (_: string, text: string) => {
    clearProgress(stderr)
    stderr.write(text)
  }
  const plain = stderr.isJournal === true ? journalled(stderr) : write
  if (format === 'json' || (format === 'auto' && !stderr.isTTY)) return { write: (line) => plain(line, line) }
  const paint = painter(wantsColour(stderr, env))
  return { write: (line) => plain(line, readableLine(line, paint)) }
}

/** The priorities of sd-daemon(3), which the journal takes off each line and keeps beside it: for `journalctl -p warning`. */
const priorities: Readonly<Record<string, number>> = { error: 3, warn: 4, info: 6, debug: 7 }

/** `line` is the JSON of which `text` is written. */
function journalled(journal: Destination): (line: string, text: string) => void {
  return (line, text) => {
    const level = /^\{"level":"(\w+)"/.exec(line)?.[1] ?? 'info'
    journal.write(text.replaceAll(/^(?=.)/gm, `<${priorities[level] ?? priorities.info}>`))
  }
}

function loadPino(destination: Destination, level: LogLevel, fields: Readonly<Record<string, string>>): Log {
  const name = typeof bundledPino === 'string' ? bundledPino : 'pino'
  const { createRequire } = process.getBuiltinModule('node:module')
  const create = createRequire(import.meta.url)(name) as typeof pino
  const options: pino.LoggerOptions = {
    level,
    base: fields,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
  }
  return create(options, destination)
}

const looks = {
  fatal: ['FATAL', 'red'],
  error: ['ERROR', 'red'],
  warn: ['WARN ', 'yellow'],
  info: ['INFO ', 'green'],
  debug: ['DEBUG', 'blue'],
  trace: ['TRACE', 'grey'],
} as const

function isLevel(value: unknown): value is keyof typeof looks {
  return typeof value === 'string' && Object.hasOwn(looks, value)
}

/** Fields that the sentence says already, or that no reader of a terminal wants. */
const hidden = new Set(['level', 'time', 'msg', 'operation', 'directory', 'objects', 'causes'])

/** One line of JSON as a person reads it: `12:00:01 INFO  Published  the sentence  key=value`. @internal */
export function readableLine(line: string, paint: Paint): string {
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(line) as Record<string, unknown>
  } catch {
    return line
  }
  const [label, colour] = looks[isLevel(entry.level) ? entry.level : 'info']
  const parts = [paint('grey', String(entry.time).slice(11, 19)), paint(colour, label)]
  if (typeof entry.reason === 'string') parts.push(paint('bold', entry.reason))
  if (typeof entry.msg === 'string') parts.push(escaped(entry.msg))
  for (const [name, value] of Object.entries(entry)) {
    if (hidden.has(name) || name === 'reason') continue
    parts.push(paint('grey', `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`))
  }
  return `${parts.join(' ')}\n`
}
