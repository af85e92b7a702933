/**
 * The one door to a terminal. Names of files and objects, and the words of servers and other programs, may hold what a terminal obeys: nothing of
 * that leaves a command, whatever wrote it.
 */
import { escaped } from '../../quote.js'
import { colourSequence, wantsColour } from './colour.js'
import type { Io, Output } from './io.js'

/** The same process, with text escaped on its way out. What a command itself says to a terminal goes through `control`. */
export function behindDoor(io: Io): Io {
  // Its stdin comes into being with the first look at it.
  const guarded = Object.create(io) as Io
  const out = (stream: Output) => ({ value: guard(stream, wantsColour(stream, io.env)), enumerable: true })
  return Object.defineProperties(guarded, { stdout: out(io.stdout), stderr: out(io.stderr) })
}

function guard(stream: Output, coloured: boolean): Output {
  const write = coloured
    ? (text: string) => stream.write(text.split(colourSequence).map(piece).join(''))
    : (text: string) => stream.write(escaped(text))
  const control = (sequence: string) => stream.write(sequence)
  return Object.create(stream, { write: { value: write }, control: { value: control } }) as Output
}

/** Pieces between the colours, and the colours, take turns. */
const piece = (text: string, index: number): string => (index % 2 === 0 ? escaped(text) : text)
