/** Quantities, such as `500m` and `1.5Gi` (apimachinery: pkg/api/resource, ParseQuantity). */
import { digitsOf } from '../../yaml/exact-number.js'

const binary = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 }
const decimal = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }

/** `digits` times a power of ten; no digit at its end is 0, unless it is the only one. */
export interface Quantity {
  readonly digits: bigint
  readonly power: number
}

/** undefined for every value that is no quantity; kubelet's decoder takes spaces around one. */
export function parseQuantity(value: unknown): Quantity | undefined {
  const text = digitsOf(value) ?? value
  if (typeof text !== 'string') return undefined
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i)|([eE][+-]?\d{1,3})|([numkMGTPE]?))$/.exec(text.trim())
  const [, sign, whole = '', fraction = '', two, exponent, ten = ''] = parts ?? []
  if (parts === null || whole + fraction === '') return undefined
  const factor = two === undefined ? 1n : 1024n ** BigInt(binary[two as keyof typeof binary])
  const all = whole + fraction
  let end = all.length
  // As text: each division copies the whole number. 40,000 zeros took half a second, 400,000 three minutes.
  while (end > 1 && all[end - 1] === '0') end--
  let digits = BigInt(all.slice(0, end)) * factor
  let power =
    (exponent === undefined ? decimal[ten as keyof typeof decimal] : Number(exponent.slice(1))) +
    (all.length - end - fraction.length)
  if (digits === 0n) return { digits, power: 0 }
  while (digits % 10n === 0n) {
    digits /= 10n
    power++
  }
  return { digits: sign === '-' ? -digits : digits, power }
}

const scaled = ({ digits, power }: Quantity, to: number): bigint => digits * 10n ** BigInt(power - to)

export function isLess(a: Quantity, b: Quantity): boolean {
  const power = Math.min(a.power, b.power)
  return scaled(a, power) < scaled(b, power)
}

export function sumOf(a: Quantity, b: Quantity): Quantity {
  const power = Math.min(a.power, b.power)
  return { digits: scaled(a, power) + scaled(b, power), power }
}

/** The quantity of 0 or more as a whole number, rounded up as Go's Value() is. */
export function wholeUp(quantity: Quantity): bigint {
  if (quantity.power >= 0) return scaled(quantity, 0)
  const unit = 10n ** BigInt(-quantity.power)
  return (quantity.digits + unit - 1n) / unit
}
