import type { ValueType } from './field.js'
import type { Value } from './value.js'
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
  return {
    read: (value) => readDuration(value, limits),
    schema: () => ({
      type: 'string',
      pattern: `^(?:0|(?:${part})+)$`,
      description: `a duration such as 1m30s, ${limits.least} to ${limits.most}`,
    }),
  }
}

function readDuration(value: Value, limits: DurationLimits): number | undefined {
  const { node } = value
  if (node.kind === 'scalar' && typeof node.value === 'number') {
    const seconds = `${node.source}s`
    const advice = isWithin(parseDuration(seconds), limits) ? `write ${quote(seconds)} for seconds` : range(limits)
    return value.wrong(`${node.source} has no unit`, advice)
  }
  const text = value.text('10s')
  if (text === undefined) return undefined
  const duration = parseDuration(text)
  if (duration === undefined)
    return value.wrong(`${quote(text)} is not a duration`, 'write as in "10s", "1m30s", "500ms"')
  if (!isWithin(duration, limits)) return value.wrong(`${quote(text)} is out of range`, range(limits))
  return Math.round(duration)
}

function isWithin(duration: number | undefined, { least, most }: DurationLimits): boolean {
  return (
    duration !== undefined && duration >= (parseDuration(least) ?? 0) && duration <= (parseDuration(most) ?? Infinity)
  )
}

function range({ least, most }: DurationLimits): string {
  return `write ${least} to ${most}`
}
