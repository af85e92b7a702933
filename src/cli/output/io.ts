import type { EventEmitter } from 'node:events'
import { fstatSync, writeSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { clock } from '../../clock.js'
import { codeOf, messageOf } from '../../errors.js'
import { escaped } from '../../message-text.js'

/** A stream for text. Everything is written when the call returns, so that the process may end right after it. */
export interface Output {
  readonly isTTY: boolean
  /** Width of the terminal; undefined where there is none. */
  readonly columns: number | undefined
  readonly write: (text: string) => void
  /** Writes what moves a terminal's cursor: `write` escapes it. */
  readonly control?: (sequence: string) => void
  /** The reader has gone away (`| head`): nothing that holdfast writes arrives. */
  readonly closed?: boolean
  /** systemd has connected the stream to its journal. */
  readonly isJournal?: boolean
}

/** The parts of its process that a command line uses. Injected, so that several can run in one process. */
export interface Io {
  /** `fd` where the kernel knows it by a number. */
  readonly stdin: Readable & { readonly isTTY?: boolean; readonly fd?: number }
  readonly stdout: Output
  readonly stderr: Output
  readonly env: NodeJS.ProcessEnv
  /** Emits the signals that were received (`SIGTERM`), and `uncaughtException`. */
  readonly events: Pick<EventEmitter, 'on' | 'once' | 'removeListener' | 'removeAllListeners'>
  /** Ends the process by the signal's default action. */
  readonly raise: (signal: NodeJS.Signals) => void
  /** Ends the process at once. */
  readonly exit: (code: number) => void
  /** Closes Node's inspector, where it is open. */
  readonly closeInspector: () => void
}

/** The major number of /dev/null and its neighbours in Linux: devices that are memory. */
const memory = 1

/**
 * Node's streams for a terminal take two milliseconds to load: a descriptor that is no character device is none, nor is /dev/null, where
 * scripts discard output.
 */
function isatty(descriptor: number): boolean {
  try {
    const status = fstatSync(descriptor)
    if (!status.isCharacterDevice() || ((status.rdev >> 8) & 0xfff) === memory) return false
    return process.getBuiltinModule('node:tty').isatty(descriptor)
  } catch {
    // It is closed.
    return false
  }
}

/** JOURNAL_STREAM names the journal's stream: a program that redirects its output leaves the variable as it is. Source: systemd.exec(5). */
function isJournal(descriptor: number): boolean {
  if (!process.env.JOURNAL_STREAM) return false
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true })
    return process.env.JOURNAL_STREAM === `${dev}:${ino}`
  } catch {
    return false
  }
}

/** This process. */
export const processIo: Io = {
  // Made at the first use: its stream would keep the process from ending.
  get stdin() {
    return process.stdin
  },
  stdout: {
    isTTY: isatty(1),
    get columns() {
      return isatty(1) ? process.stdout.columns : undefined
    },
    write: writeToStandardOutput,
    get closed() {
      return outputClosed
    },
  },
  stderr: {
    isTTY: isatty(2),
    get columns() {
      return isatty(2) ? process.stderr.columns : undefined
    },
    write: writeToStandardError,
    get isJournal() {
      return isJournal(2)
    },
  },
  env: process.env,
  events: process,
  raise(signal) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  },
  exit: (code) => process.exit(code),
  // As in bin/prepare.js, which says why.
  closeInspector: () => (process as { _debugEnd?: () => void })._debugEnd?.(),
}

/** One JSON document. */
export function printJson(output: Output, document: unknown): void {
  output.write(`${escaped(JSON.stringify(document, undefined, 2))}\n`)
}

let outputClosed = false

const pause = new Int32Array(new SharedArrayBuffer(4))
/** Between two attempts to write to a full pipe that another process made non-blocking, in milliseconds. */
const betweenAttempts = 5

/** Throws where the text cannot be written. A reader that has gone away (`| head`) is no error. */
function writeToStandardOutput(text: string): void {
  let rest: Uint8Array = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      const code = codeOf(error)
      if (code === 'EPIPE') {
        outputClosed = true
        return
      }
      // The reader decides how long this takes.
      if (code !== 'EAGAIN') {
        throw new Error(
          `could not write to standard output: ${code ?? messageOf(error)}; if the command has changed something, that stays: status or verify shows it`,
          { cause: error },
        )
      }
      Atomics.wait(pause, 0, 0, betweenAttempts)
    }
  }
}

/** How long a full pipe may hold a line of the log up, in milliseconds, before the rest of it is dropped. */
const patience = 200

/** Never throws: a standard error that is gone is no reason to fail. */
function writeToStandardError(text: string): void {
  let rest: Uint8Array = Buffer.from(text)
  const deadline = clock.now() + patience
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(2, rest))
    } catch (error) {
      const full = codeOf(error) === 'EAGAIN'
      if (!full || clock.now() > deadline) return
      Atomics.wait(pause, 0, 0, betweenAttempts)
    }
  }
}
