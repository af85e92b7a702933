import { hash } from 'node:crypto'

/* Lines of a file, each `SHA-256 of the JSON, a space, JSON`. Records and the status of many directories are made of them. */

export function encodeLine(value: object): Uint8Array {
  const json = JSON.stringify(value)
  return Buffer.from(`${checksum(json)} ${json}\n`)
}

function checksum(text: string): string {
  return hash('sha256', text)
}

/** A line that is whole. */
export interface Line {
  /** With its checksum and its end. */
  readonly text: string
  readonly value: object
}

/**
 * The whole lines of a record's text, without the damaged ones between them: no line depends on another. There are none where the first,
 * the record itself, is damaged.
 */
export function readLines(text: string): { readonly lines: readonly Line[]; readonly isDamaged: boolean } {
  const pieces = text.split('\n')
  let isDamaged = pieces.pop() !== ''
  const lines: Line[] = []
  for (const [index, piece] of pieces.entries()) {
    const json = piece.slice(65)
    const isWhole = piece[64] === ' ' && piece.slice(0, 64) === checksum(json)
    const value = isWhole ? parseLine(json) : undefined
    if (value !== undefined) lines.push({ text: `${piece}\n`, value })
    else if (index === 0) return { lines: [], isDamaged: true }
    else isDamaged = true
  }
  return { lines, isDamaged }
}

/** What the whole lines say. */
export function wholeLines(text: string): object[] {
  return readLines(text).lines.map(({ value }) => value)
}

/** undefined for text that is no JSON object: no line of ours, in spite of its checksum. */
function parseLine(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
