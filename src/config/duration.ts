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

/** A number with its unit. It tries a number of any length in one way only: refusing a long one must not take time. */
export const durationPart = `(\\d+(?:\\.\\d*)?|\\.\\d+)(${Object.keys(milliseconds).join('|')})`

/**
 * Milliseconds of a duration as Go writes it: `10s`, `1m30s`, `500ms`, `1.5h`, `0`; undefined for any other text. Negative
 * durations are not accepted. Source: Go, time.ParseDuration.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  const next = new RegExp(durationPart, 'y')
  let total = 0
  while (next.lastIndex < text.length) {
    const found = next.exec(text)
    if (found === null) return undefined
    total += Number(found[1]) * (milliseconds[found[2] ?? ''] ?? NaN)
  }
  return text === '' || !(total <= longest) ? undefined : total
}
