/** A command line, run in this process: all of the program but its process, at a fraction of its time. */
import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import type { Io, Output } from '../../src/cli/output/io.js'
import { main } from '../../src/cli/main.js'

/** How a command ended: as `ended` of a process, where none is ended by a signal. */
export interface Result {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Given {
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
  /** Emits signals to the command. */
  readonly events?: EventEmitter
}

/** The Io that a command gets in place of its process, and the text that it has written there. */
export function testIo({ input = '', env = {}, events = new EventEmitter() }: Given = {}) {
  const written = { stdout: '', stderr: '' }
  const output = (name: keyof typeof written): Output => ({
    isTTY: false,
    columns: undefined,
    write: (text) => void (written[name] += text),
  })
  const io: Io = {
    stdin: Readable.from(input.length > 0 ? [Buffer.from(input)] : []),
    stdout: output('stdout'),
    stderr: output('stderr'),
    // No variable of this machine, which must not decide a test.
    env: { PATH: process.env.PATH ?? '', ...env },
    events,
    raise: (signal) => {
      throw new Error(`the command would have ended by ${signal}`)
    },
    exit: (code) => {
      throw new Error(`the command would have ended at once with ${code}`)
    },
    closeInspector: () => {},
  }
  return { io, written }
}

export async function runInProcess(args: readonly string[], given: Given = {}): Promise<Result> {
  const events = given.events ?? new EventEmitter()
  const { io, written } = testIo({ ...given, events })
  const code = await main(args, io)
  const left = events.eventNames().filter((name) => name.toString().startsWith('SIG'))
  if (left.length > 0 && args[0] !== 'agent') throw new Error(`listeners are left for ${left.join(', ')}`)
  return { code, signal: null, ...written }
}
