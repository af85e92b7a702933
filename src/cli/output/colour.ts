import { escaped } from '../../message-text.js'
import type { Io, Output } from './io.js'

/**
 * Whether to colour the text of this stream: on a terminal, unless NO_COLOR forbids it (https://no-color.org). FORCE_COLOR
 * decides first, as in Node: `0` and `false` for none, anything else for colour also where no terminal is.
 */
export function wantsColour(stream: { readonly isTTY: boolean }, environment: NodeJS.ProcessEnv): boolean {
  const { FORCE_COLOR: forced, NO_COLOR, TERM } = environment
  if (forced) return forced !== '0' && forced !== 'false'
  return stream.isTTY && !NO_COLOR && TERM !== 'dumb'
}

const codes = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const

/** A colour, or the end of one, as the painter writes it. */
const colourSequence = new RegExp(`(\u001b\\[(?:0|${Object.values(codes).join('|')})m)`)

export type Colour = keyof typeof codes

export type Paint = (colour: Colour, text: string) => string

/** Colours text, or leaves it as it is. */
export function painter(enabled: boolean): Paint {
  return (colour, text) => (enabled ? `\u001b[${codes[colour]}m${escaped(text)}\u001b[0m` : text)
}

/**
 * The one door to a terminal. Names of files and objects, and the words of servers and other programs, may hold what a terminal obeys: nothing of
 * that leaves a command, whatever wrote it.
 */

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
