/** The names that holdfast keeps beside a target, as they are documented: `.holdfast-ID…`, ID of the target's basename. */
import { createHash } from 'node:crypto'

export function keptNames(basename: string): {
  lock: string
  record: (sequence: number) => string
  staging: string
} {
  const prefix = `.holdfast-${createHash('sha256').update(basename).digest('hex').slice(0, 16)}`
  return {
    lock: `${prefix}.lock`,
    record: (sequence) => `${prefix}.${sequence}`,
    staging: `${prefix}-0123456789abcdef`,
  }
}
