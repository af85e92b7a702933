import type { ValueType } from './field.js'
import { textOf } from './value-types.js'
import { quote } from '../message-text.js'

const milliseconds: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds: Go counts nanoseconds in 64 bits. */
const longest = (2 ** 63 - 1) / 1e6

// The pattern tries a number of any length in one way only: refusing a long one must not take time.
const part = `(\\d+(?:\\.\\d*)?|\\.\\d+)(${Object.keys(milliseconds).join('|')})`

/**
 * Milliseconds of a duration as Go writes it: `10s`, `1m30s`, `500ms`, `1.5h`, `0`; undefined for any other text. Negative
 * durations are not accepted. Source: Go, time.ParseDuration.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  const next = new RegExp(part, 'y')
  let total = 0
  while (next.lastIndex < text.length) {
    const found = next.exec(text)
    if (found === null) return undefined
    total += Number(found[1]) * (milliseconds[found[2] ?? ''] ?? NaN)
  }
  return text === '' || !(total <= longest) ? undefined : total
}

/** The least and the most that a duration may be, as they are written. */
export interface DurationLimits {
  readonly least: string
  readonly most: string
}

const hookLimits: DurationLimits = { least: '1ms', most: '1h' }

/** Milliseconds, an integer, within the limits. */
export function duration(limits: DurationLimits = hookLimits): ValueType<number> {
  const { least, most } = limits
  const range = `write ${least} to ${most}`
  return textOf(
    {
      example: '10s',
      schema: () => ({
        type: 'string',
        pattern: `^(?:0|(?:${part})+)$`,
        description: `a duration such as 1m30s, ${least} to ${most}`,
      }),
      ofNumber: (_, source, value) => {
        const seconds = `${source}s`
        const isMeant = isWithin(parseDuration(seconds), limits)
        return value.wrong(`${source} has no unit`, isMeant ? `write ${quote(seconds)} for seconds` : range)
      },
    },
    (text, value) => {
      const duration = parseDuration(text)
      if (duration === undefined)
        return value.wrong(`${quote(text)} is not a duration`, 'write as in "10s", "1m30s", "500ms"')
      return isWithin(duration, limits) ? Math.round(duration) : value.wrong(`${quote(text)} is out of range`, range)
    },
  )
}

function isWithin(duration: number | undefined, { least, most }: DurationLimits): boolean {
  return (
    duration !== undefined && duration >= (parseDuration(least) ?? 0) && duration <= (parseDuration(most) ?? Infinity)
  )
}
