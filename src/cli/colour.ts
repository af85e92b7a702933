/** Whether to colour what goes to this stream: a terminal, and nobody asked for none (https://no-color.org). */
export function wantsColour(stream: { readonly isTTY: boolean }, environment: NodeJS.ProcessEnv): boolean {
  return stream.isTTY && !environment.NO_COLOR && environment.TERM !== 'dumb'
}

const codes = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const

export type Colour = keyof typeof codes

export type Paint = (colour: Colour, text: string) => string

/** Colours text, or leaves it as it is. */
export function painter(enabled: boolean): Paint {
  return (colour, text) => (enabled ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text)
}
