import { unfit, type DurableWriteError } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import { isInForce, isPinned, recordBody, type StoredRecord, agentOf, letGoSince, withRecord } from '../record/index.js'
import { checkTarget } from '../path/index.js'
import { rewriteRecord } from './rewrite-record.js'
import type { HoldOptions, Hold, Pin } from '../types.js'

/*
 * Hold and release: a field of the record that stops every publication of a target. It takes a new record of the published content, not a
 * line appended to the old one: a power cut can tear an appended line, and a reader stops there. The new record says that its reader must
 * know holds, so that an older version of this program refuses the target rather than publishing it.
 */

/**
 * Holds a published target, durably, or lets it go (`undefined`). The content is neither read into memory as a whole nor touched. A pin
 * ends with the hold, or by itself. Answers the hold or pin that was in force before.
 * @throws DurableWriteError: holdfast has published nothing there (ENOENT), another process publishes (Busy), or the system's error: then a
 *   power cut may leave either record
 */
export async function setHold(
  fs: FileSystem,
  path: string,
  hold: Hold | undefined,
  options: HoldOptions = {},
): Promise<Hold | Pin | undefined> {
  const target = checkTarget(path)
  const verb = hold ? 'hold' : 'release'
  const doing = { problem: `could not ${verb} ${target}`, verb }
  const found = await rewriteRecord(
    fs,
    target,
    doing,
    (record, tree) => {
      if (hold === undefined && record.hold === undefined && record.pin === undefined) return undefined
      if (record.removing && tree === undefined) throw removed(target)
      return recordBody(record, { hold, pin: hold && record.pin })
    },
    options,
  )
  return inForce(found, fs.now())
}

function inForce({ hold, pin }: StoredRecord, now: number): Hold | Pin | undefined {
  if (isInForce(hold, now)) return hold
  return isPinned(pin, now) ? pin : undefined
}

/** An interrupted removal has taken it away. */
function removed(path: string): DurableWriteError {
  return unfit(`${path} was removed, and what is left of it is only to be cleared up`, {
    code: 'ENOENT',
    syscall: 'lstat',
    path,
    advice: `run "holdfast remove ${path}" again, or publish it again`,
  })
}

/*
 * A target that leaves the configuration is let go: a durable mark in its record says so, since the record outlives the relationship. From
 * then on, another program's change is no drift: the target comes back by an adoption. An unchanged target comes back with a new record
 * alone.
 */

/**
 * Records that the agent that keeps a target keeps it no more, durably. Answers whether it does now. Nothing is written where another one
 * keeps it, or no agent does.
 * @throws DurableWriteError
 */
export async function letGo(
  fs: FileSystem,
  path: string,
  { agent, ...options }: HoldOptions & { readonly agent: string | undefined },
): Promise<boolean> {
  const target = checkTarget(path)
  // An agent without an identity keeps no target of an agent with one.
  const isKept = (record: StoredRecord | undefined): record is StoredRecord =>
    record?.publisher === 'agent' &&
    record.removing === undefined &&
    letGoSince(record) === undefined &&
    [undefined, agent].includes(agentOf(record))
  // The lock decides which of them speaks.
  if ((await withRecord(fs, target, (_, __, records) => Promise.resolve(records.some(isKept)))) !== true) return false
  const doing = { problem: `could not record that ${target} is let go`, verb: 'let it go' }
  const change = (record: StoredRecord) => {
    if (!isKept(record)) return undefined
    // An old path stops following the new one: a later relocation must claim it again.
    return recordBody(record, { movedTo: undefined, letGo: { since: fs.now(), publishedAt: record.publishedAt } })
  }
  return isKept(await rewriteRecord(fs, target, doing, change, options))
}
