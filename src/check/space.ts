import type { fitness } from '../durable/index.js'
import type { Free } from '../durable/file-system.js'
import { fault, inBytes, ok, warn, type CheckResult } from './findings.js'

/** Below this many free bytes and inodes there is little room for anything. */
const lowBytes = 16 * 1024 * 1024
const lowInodes = 128

/** Old and new are on the disk together until the old content is removed; while a second publication waits, twice as much. */
export function checkSpace(free: Pick<Free, 'bytes' | 'inodes'>, used: fitness.Usage | undefined): CheckResult[] {
  return [
    amountResult('space', free.bytes, used?.bytes ?? 0, lowBytes, inBytes),
    free.inodes === undefined
      ? ok('inodes', 'this file system creates them as needed')
      : amountResult('inodes', free.inodes, used?.inodes ?? 0, lowInodes, String),
  ]
}

function amountResult(
  check: 'space' | 'inodes',
  free: number,
  used: number,
  low: number,
  show: (amount: number) => string,
): CheckResult {
  const found = used > 0 ? `${show(free)} free; the target takes ${show(used)}` : `${show(free)} free`
  const more = check === 'space' ? 'free up space on this file system' : 'remove files on this file system'
  if (free < used) return fault(check, `${found}, and the next publication needs as much again beside it`, more)
  if (free < 2 * used) return warn(check, `${found}; keep twice that free`, more)
  if (free < low) return warn(check, found, more)
  return ok(check, found)
}
