import { DurableWriteError } from '../durable/index.js'

/**
 * `OK`: as it should be. `WARN`: it works, but less is promised, or something will be in the way later. `FAULT`: with this the
 * configuration cannot be kept on this node.
 */
export type Status = 'OK' | 'WARN' | 'FAULT'

/** One thing that was looked at. Never holds the content of an object, an argument of a hook, or the path of a URL. */
export interface Finding {
  /** A path, `API server`, or `this process`. */
  readonly subject: string
  readonly check: string
  readonly status: Status
  readonly found: string
  /** What to do; null where nothing is to be done. */
  readonly advice: string | null
}

/** A finding that has not been given its subject yet. */
export type Verdict = Omit<Finding, 'subject'>

export function ok(check: string, found: string): Verdict {
  return { check, status: 'OK', found, advice: null }
}

export function warn(check: string, found: string, advice: string): Verdict {
  return { check, status: 'WARN', found, advice }
}

export function fault(check: string, found: string, advice: string): Verdict {
  return { check, status: 'FAULT', found, advice }
}

/** Nothing was touched here: that need not be said again of each fault. */
const untouched = /(?:nothing was changed|is unchanged)$/

/** What a publication would be refused with, its last part being what to do. Anything else is thrown again. */
export function faultOf(check: string, error: unknown): Verdict {
  if (!(error instanceof DurableWriteError)) throw error
  const parts = error.message.split('; ').filter((part) => !untouched.test(part))
  const advice = parts.length > 1 ? (parts.pop() ?? '') : 'name another path'
  return fault(check, parts.join('; '), advice)
}

/** `a, b and c`; of many, the first few and how many more. */
export function listed(names: readonly string[], most = 5): string {
  const shown = names.slice(0, most)
  const more = names.length - shown.length
  const all = more > 0 ? [...shown, `${more} more`] : shown
  const last = all.pop() ?? ''
  return all.length === 0 ? last : `${all.join(', ')} and ${last}`
}

/** `1.5 GiB`, `12 KiB`, `7 bytes`. */
export function inBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let unit = 0
  let amount = bytes
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024
    unit += 1
  }
  const digits = unit === 0 || amount >= 10 ? 0 : 1
  return `${amount.toFixed(digits)} ${units[unit] ?? ''}`
}

/** The errno name of a failure, or what it says. */
export function codeOrMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
