import { isUtf8 } from 'node:buffer'

/*
 * Linux's file names are bytes; JavaScript's strings are not. A name that is no UTF-8 would come back mangled, name nothing,
 * and so hide from everything that looks at a directory. Each byte that is not UTF-8 becomes a lone low surrogate,
 * U+DC80 to U+DCFF, which no decoded text can hold (PEP 383), and becomes the byte again where the kernel is asked.
 */

const escapeBase = 0xdc00
const loneEscape = /(?<![\uD800-\uDBFF])[\uDC80-\uDCFF]/

/** The bytes of a name as a string, from which the same bytes can be made again. */
export function decodeName(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  // Not even its valid parts are decoded: it only has to be told apart, and found again.
  return Array.from(bytes, (byte) => String.fromCharCode(byte < 0x80 ? byte : escapeBase + byte)).join('')
}

/** A path inside a directory, for node:fs: a string, or bytes where the name holds some that are no text. */
export function pathInside(directory: string, name: string): string | Buffer {
  if (!loneEscape.test(name)) return `${directory}/${name}`
  // latin1 keeps the low eight bits of each code unit: the byte that was escaped.
  return Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name, 'latin1')])
}
