/*
 * The meaning of a scalar for the YAML library of Kubernetes: YAML 1.1, but with Go's own integers, and without numbers to
 * the base 60 (go.yaml.in/yaml/v2 v2.4.3, resolve.go; sigs.k8s.io/yaml v1.6.0 turns the result into JSON). `on` and `y` are booleans,
 * `0644` and `0o644` are octal, `1_000` is 1000, and a date is text.
 */
import { numberFrom, type ExactNumber } from './exact-number.js'

/** A value that an unquoted scalar can mean. */
export type PlainValue = string | number | ExactNumber | boolean | null

const words: ReadonlyMap<string, boolean | null> = new Map([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
])

/** Infinity and no number: Go's encoder of JSON then refuses the whole document (encoding/json, UnsupportedValueError). */
const noJson = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/

/** Go's integers with a prefix that names the base, 0 alone among them (strconv.ParseInt with base 0). */
const integer = /^([-+]?)(?:0[bB]([01]+)|0[oO]?([0-7]+)|0[xX]([\da-fA-F]+)|([1-9]\d*|0))$/

const float = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/

/** The value of an unquoted scalar; undefined where no JSON can hold it. */
export function resolvePlain(text: string): PlainValue | undefined {
  if (noJson.test(text)) return undefined
  const word = words.get(text)
  if (word !== undefined) return word
  if (!/^[-+.\d]/.test(text)) return text
  const whole = integerOf(text)
  if (whole !== undefined) return numberFrom(String(whole))
  const plain = text.startsWith('.') ? text : text.replaceAll('_', '')
  // A number too large for Go stays text, as `1e400` does.
  return float.test(plain) && Number.isFinite(Number(plain)) ? Number(plain) : text
}

const escapes: Readonly<Record<string, string>> = {
  ...{ '0': '\0', a: '\x07', b: '\b', t: '\t', '\t': '\t', n: '\n', v: '\v', f: '\f', r: '\r', e: '\x1b', ' ': ' ' },
  ...{ '"': '"', "'": "'", '\\': '\\', N: '\x85', _: '\xa0', L: '\u2028', P: '\u2029' },
}

const quotedParts = /\\(?:\r?\n[ \t\r\n]*|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[^])|[ \t\r\n]+/g

/**
 * The value of what stands in double quotes (scannerc.go, yaml_parser_scan_flow_scalar). undefined where an escape has no meaning: JSON's `\/`,
 * and half a character.
 */
export function resolveQuoted(text: string): string | undefined {
  const parts = text.match(quotedParts) ?? []
  return parts.some((part) => resolvePart(part) === undefined)
    ? undefined
    : text.replaceAll(quotedParts, (part) => resolvePart(part) ?? '')
}

function resolvePart(part: string): string | undefined {
  const isEscape = part.startsWith('\\')
  const lines = part.split('\n').length - 1
  // Of several ends of lines, the first stands for nothing.
  if (lines > 0) return '\n'.repeat(lines - 1) || (isEscape ? '' : ' ')
  if (!isEscape) return part
  if (part.length === 2) return escapes[part.slice(1)]
  const code = parseInt(part.slice(2), 16)
  return code > 0x10_ffff || (code >= 0xd800 && code < 0xe000) ? undefined : String.fromCodePoint(code)
}

/** undefined for all but an integer of 64 bits, with or without a sign: any other scalar is a float, or text. */
export function integerOf(text: string): bigint | undefined {
  // The library drops underscores wherever they stand, but not before the first digit or sign.
  const plain = text.startsWith('_') ? text : text.replaceAll('_', '')
  const [, sign, binary, octal, hexadecimal, decimal] = integer.exec(plain) ?? []
  if (sign === undefined) return undefined
  const digits =
    binary !== undefined
      ? `0b${binary}`
      : octal !== undefined
        ? `0o${octal}`
        : hexadecimal !== undefined
          ? `0x${hexadecimal}`
          : decimal
  if (digits === undefined) return undefined
  const value = BigInt(digits) * (sign === '-' ? -1n : 1n)
  const isSigned = value >= -(2n ** 63n) && value < 2n ** 63n
  // ParseUint takes no sign.
  return isSigned || (sign === '' && value < 2n ** 64n && value >= 0n) ? value : undefined
}
