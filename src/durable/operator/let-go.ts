import type { FileSystem } from '../file-system.js'
import { agentOf, letGoSince, recordBody, type StoredRecord, withRecord } from '../record/index.js'
import { checkTarget } from '../path/index.js'
import { rewriteRecord } from './rewrite-record.js'
import type { HoldOptions } from '../types.js'

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
    const { hold, pin, removing, publishedAt } = record
    // An old path stops following the new one: a later relocation must claim it again.
    const { movedTo: _, ...said } = record
    return recordBody({ ...said, letGo: { since: fs.now(), publishedAt } }, { hold, pin, removing })
  }
  return isKept(await rewriteRecord(fs, target, doing, change, options))
}
