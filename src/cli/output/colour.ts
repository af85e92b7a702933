import { escaped } from '../../quote.js'

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
export const colourSequence = new RegExp(`(\u001b\\[(?:0|${Object.values(codes).join('|')})m)`)

export type Colour = keyof typeof codes

export type Paint = (colour: Colour, text: string) => string

/** Colours text, or leaves it as it is. */
export function painter(enabled: boolean): Paint {
  return (colour, text) => (enabled ? `\u001b[${codes[colour]}m${escaped(text)}\u001b[0m` : text)
}
