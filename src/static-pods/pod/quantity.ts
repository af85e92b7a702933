/** Quantities, such as `500m` and `1.5Gi` (apimachinery: pkg/api/resource, ParseQuantity). */
import { digitsOf } from '../../yaml/exact-number.js'

const binary = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 }
const decimal = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }

/** `digits` times a power of ten; no digit at its end is 0, unless it is the only one. */
export interface Quantity {
  readonly digits: bigint
  readonly power: number
}

/** undefined for every value that is no quantity. */
export function parseQuantity(value: unknown): Quantity | undefined {
  const text = digitsOf(value) ?? value
  if (typeof text !== 'string') return undefined
  const parts = /^([+-]?)(\d*)\.?(\d*)(?:([KMGTPE]i)|([eE][+-]?\d{1,3})|([numkMGTPE]?))$/.exec(text)
  const [, sign, whole = '', fraction = '', two, exponent, ten = ''] = parts ?? []
  if (parts === null || whole + fraction === '') return undefined
  const factor = two === undefined ? 1n : 1024n ** BigInt(binary[two as keyof typeof binary])
  let digits = BigInt(whole + fraction) * factor
  let power =
    (exponent === undefined ? decimal[ten as keyof typeof decimal] : Number(exponent.slice(1))) - fraction.length
  if (digits === 0n) return { digits, power: 0 }
  while (digits % 10n === 0n) {
    digits /= 10n
    power++
  }
  return { digits: sign === '-' ? -digits : digits, power }
}

export function isLess(a: Quantity, b: Quantity): boolean {
  const power = Math.min(a.power, b.power)
  return a.digits * 10n ** BigInt(a.power - power) < b.digits * 10n ** BigInt(b.power - power)
}
