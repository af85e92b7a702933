/** A fault in a Pod, and the ways to find one in unchecked values of the right types. */
import { digitsOf } from '../../yaml/exact-number.js'
import { asText, type JsonMap } from '../json.js'

export interface PodFault {
  /** As in `spec.containers[1].name`. */
  readonly field: string
  /** Quotes no value but names. */
  readonly problem: string
}

export type Faults = Generator<PodFault>

/** null is as good as absent to Go's decoder. */
export function isThere(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** 0 where there is none, as Go has it. */
export function wholeOf(value: unknown): number {
  return Number(digitsOf(value) ?? 0)
}

/** Fields that hold one of some words. An empty text is as good as none: the default takes its place. */
export function* oneOf(map: JsonMap, fields: Readonly<Record<string, readonly string[]>>, at: string): Faults {
  for (const [name, allowed] of Object.entries(fields)) {
    const value = asText(map[name]) ?? ''
    if (value !== '' && !allowed.includes(value))
      yield { field: `${at}.${name}`, problem: `must be one of ${allowed.join(', ')}` }
  }
}

/** A text that may be missing, and else has this form. */
export function* named(value: unknown, field: string, isName: (text: string) => boolean, what: string): Faults {
  const text = asText(value) ?? ''
  if (text !== '' && !isName(text)) yield { field, problem: `is not a valid ${what}` }
}
