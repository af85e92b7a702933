import { parseDuration } from '../../../src/config/duration.js'
import { demand, type Target } from '../target.js'

/** Milliseconds that Go can hold; a number of JavaScript is not exact so near to it. */
const longest = 2 ** 63 / 1e6

export const durations: Target<number> = {
  name: 'durations',
  files: ['config/duration.js'],
  longest: 65_536,
  words: [
    'ns',
    'us',
    'µs',
    'μs',
    'ms',
    's',
    'm',
    'h',
    '.',
    '0',
    '1h30m',
    '9223372036854775807',
    '2562047h47m16.854775807s',
    '+',
    '-',
  ],
  read(input) {
    const found = parseDuration(input.toString())
    demand(found === undefined || (Number.isFinite(found) && found >= 0), `a duration of ${found} ms`)
    return found
  },
  go: {
    as: 'duration',
    contradiction: (input, ours, { error, value }) => {
      const isNearEnd = Math.max(ours ?? 0, Number(value ?? 0) / 1e6) > longest * (1 - 1e-12)
      if (ours === undefined) {
        // Refused with intent: no duration of holdfast has a sign.
        const isMeant = /^[-+]/.test(input.toString('latin1')) || isNearEnd
        return error === undefined && !isMeant ? 'Go takes it, and holdfast does not' : undefined
      }
      if (error !== undefined) return isNearEnd ? undefined : `holdfast takes it, and Go says: ${error}`
      const theirs = Number(value) / 1e6
      // Go cuts each part to whole nanoseconds.
      const isEqual = Math.abs(ours - theirs) <= 1e-6 * (1 + input.length) + theirs * 1e-12
      return isEqual ? undefined : `${ours} ms, and to Go ${theirs} ms`
    },
  },
}
