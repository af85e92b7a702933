import { DurableWriteError } from '../durable/errors.js'
import { adviceFor, codeOf, messageOf } from '../errors.js'

/**
 * `OK`: as it should be. `WARN`: it works, but less is promised, or something will be in the way later. `FAULT`: with this the
 * configuration cannot be kept on this node.
 */
export type Status = 'OK' | 'WARN' | 'FAULT'

/** The result of one check. Never holds the content of an object, an argument of a hook, or the path of a URL. */
export interface Finding {
  /** A path, `API server`, or `this process`. */
  readonly subject: string
  readonly check: string
  readonly status: Status
  readonly found: string
  /** Advice; null where nothing is to be done. */
  readonly advice: string | null
}

/** A finding that has not been given its subject yet. */
export type CheckResult = Omit<Finding, 'subject'>

export function ok(check: string, found: string): CheckResult {
  return { check, status: 'OK', found, advice: null }
}

export function warn(check: string, found: string, advice: string): CheckResult {
  return { check, status: 'WARN', found, advice }
}

export function fault(check: string, found: string, advice: string): CheckResult {
  return { check, status: 'FAULT', found, advice }
}

/** Shows a publication's refusal as a fault. Throws any other error again. */
export function faultOf(check: string, error: unknown): CheckResult {
  if (!(error instanceof DurableWriteError)) throw error
  return fault(check, error.problem, error.advice ?? 'choose another path')
}

/** Advice about a system call that failed with this errno. */
export function findingAdvice(code: string): string {
  return adviceFor(code) ?? 'check the kernel log'
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

/** The errno name of a failure, or its message. */
export function codeOrMessage(error: unknown): string {
  return codeOf(error) ?? messageOf(error)
}
