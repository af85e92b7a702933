import { hash } from 'node:crypto'

/* The lines of a record's file, each `SHA-256 of the JSON, a space, JSON`: see record.ts. */

export function encodeLine(value: object): Uint8Array {
  const json = JSON.stringify(value)
  return Buffer.from(`${checksum(json)} ${json}\n`)
}

function checksum(text: string): string {
  return hash('sha256', text)
}

/** Up to the first that is damaged. */
export function wholeLines(text: string): object[] {
  const values: object[] = []
  for (const line of text.split('\n').slice(0, -1)) {
    const json = line.slice(65)
    if (line[64] !== ' ' || line.slice(0, 64) !== checksum(json)) break
    const value = parseLine(json)
    if (value === undefined) break
    values.push(value)
  }
  return values
}

/** undefined for what is no JSON object: no line of ours, whatever its checksum. */
function parseLine(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
