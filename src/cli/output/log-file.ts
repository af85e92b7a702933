import { appendFileSync, closeSync, constants, fstatSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs'
import type { Log } from '../../log.js'

/** As library-go's startup-monitor keeps it. */
const largest = 5 * 1000 * 1000
const backups = 2
const longestKept = 28 * 24 * 3600 * 1000

/**
 * Logs to a file too, as JSON lines, 0600: when it reaches 5 MB it becomes FILE.1, and that FILE.2; older ones go, and so does a file
 * without a write for 28 days. A file that cannot be written is reported once, and is no reason to stop.
 */
export function logToFile(path: string, log: Log): Log {
  let failed = false
  let looked = false
  const write = (level: string, fields: object, message: string): void => {
    try {
      // Once at least, since a file that never grows that large has no other occasion.
      if (!looked) forgetFile(path)
      looked = true
      if (sizeOf(path) >= largest) rotate(path)
      const line = JSON.stringify({ level, time: new Date().toISOString(), ...fields, msg: message })
      appendToFile(path, `${line}\n`)
    } catch (error) {
      if (!failed) log.warn({ path, error: String(error) }, 'could not write the log file')
      failed = true
    }
  }
  const both = (level: keyof Log) => (fields: object, message: string) => {
    log[level](fields, message)
    if (level !== 'debug') write(level, fields, message)
  }
  return { debug: both('debug'), info: both('info'), warn: both('warn'), error: both('error') }
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants

/** Another user may have made the name: a link would lead elsewhere, and a FIFO that has no reader would hang the open. */
function appendToFile(path: string, line: string): void {
  const file = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is no regular file`)
    appendFileSync(file, line)
  } finally {
    closeSync(file)
  }
}

function rotate(path: string): void {
  for (let n = backups; n > 0; n--) {
    const from = n === 1 ? path : `${path}.${n - 1}`
    if (sizeOf(from) > 0) renameSync(from, `${path}.${n}`)
  }
  forgetFile(path)
}

function forgetFile(path: string): void {
  for (let n = 1; n <= backups; n++) {
    const stat = lstatSync(`${path}.${n}`, { throwIfNoEntry: false })
    if (stat && Date.now() - stat.mtimeMs > longestKept) rmSync(`${path}.${n}`, { force: true })
  }
}

function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
}
