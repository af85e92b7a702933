/* Accessors for unchecked JSON. */
import { ExactNumber } from '../yaml/exact-number.js'

export type JsonMap = Readonly<Record<string, unknown>>

/** undefined for everything but a map. */
export function asMap(value: unknown): JsonMap | undefined {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  return isMap ? (value as JsonMap) : undefined
}

/** Empty for everything but a list. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** undefined for everything but a text. */
export function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
