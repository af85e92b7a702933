/** Numbers whose digits JavaScript would change, and JSON that keeps them: 9007199254740993 is 9007199254740992 as a number. */

/** A number of JSON that is written in a way that no JavaScript number has: too large, too exact, `1.0`, `1E3`. */
export class ExactNumber {
  constructor(
    /** As JSON has it. */
    readonly digits: string,
  ) {}
}

/** The number that a JSON text stands for, where JavaScript would write this very text for it; else the digits. */
export function numberFrom(digits: string): number | ExactNumber {
  const value = Number(digits)
  return String(value) === digits ? value : new ExactNumber(digits)
}

/** A number as JSON has it; undefined for everything else. */
export function digitsOf(value: unknown): string | undefined {
  if (value instanceof ExactNumber) return value.digits
  return typeof value === 'number' ? String(value) : undefined
}

/** The JSON of a value, as JSON.stringify writes it, and with every digit of an ExactNumber. */
export function encodeJson(value: unknown): string {
  if (value instanceof ExactNumber) return value.digits
  if (Array.isArray(value)) return `[${value.map(encodeJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${encodeJson(field)}`).join(',')}}`
}

/** Strings, so that the search passes over digits in them, and numbers. The caller knows that the text is JSON. */
const stringsAndNumbers = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g

/** Whether JavaScript would change a number of a JSON text. */
export function hasExactNumbers(json: string): boolean {
  for (const [token] of json.matchAll(stringsAndNumbers)) {
    if (!token.startsWith('"') && numberFrom(token) instanceof ExactNumber) return true
  }
  return false
}
