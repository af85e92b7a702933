import type { Log } from '../../log.js'
import { foreign, leftAsItWas } from '../errors.js'
import {
  type Judgement,
  isOtherAgents,
  letGoSince,
  letGoText,
  describes,
  type RecordBody,
  recordBody,
  type StoredRecord,
} from '../record/index.js'
import type { Tree } from '../path/index.js'
import { renamedMeanwhile, supersedeRecord, type Site } from '../target/index.js'
import type { PublicationOptions } from '../types.js'

/* An agent takes a published target for its own, in the present record. */

/** Whether another program has changed the content since the agent let the target go. */
export function isChangedSince({ recorded, record }: Pick<Judgement, 'recorded' | 'record'>): boolean {
  return !recorded && record !== undefined && letGoSince(record) !== undefined
}

/** What its record says otherwise once this agent keeps it: it is not let go. */
function keptBy({ publishedAt }: StoredRecord, agent: string | undefined): Partial<RecordBody> {
  return { letGo: undefined, ...(agent !== undefined && { agent: { id: agent, publishedAt } }) }
}

/**
 * Where the content is as the agent desires: if the target was let go, or another agent kept it, writes durably that this agent keeps it,
 * in a record that replaces the present one, and answers that. A hold and a pin stay: they do not depend on the keeper. The caller holds
 * the lock.
 */
export async function takeIn(
  site: Site,
  { current, nextSequence }: Judgement,
  { publisher, agent }: Pick<PublicationOptions, 'publisher' | 'agent'>,
  log: Log,
): Promise<StoredRecord | undefined> {
  const { path, within } = site
  if (current === undefined || publisher !== 'agent') return undefined
  if (letGoSince(current) === undefined && !isOtherAgents(current, agent)) return undefined
  const kept = keptBy(current, agent)
  const place = { ...current.place, within }
  const renamed = () => renamedMeanwhile(path, `could not record who keeps ${path}`, 'publish')
  await supersedeRecord(site, nextSequence, recordBody(current, { ...kept, place }), current, log, renamed)
  return { ...current, ...kept, sequence: nextSequence }
}

/** What the record of an old path that moves says otherwise, kept by this agent. Only unchanged content that this agent has published moves. */
export function claimed(
  from: string,
  record: StoredRecord,
  tree: Tree | undefined,
  to: string,
  agent: string | undefined,
): Partial<RecordBody> {
  if (record.movedTo !== to && isOtherAgents(record, agent)) {
    throw foreign(`another agent publishes ${from}, which is to move to ${to}`, from, {
      state: leftAsItWas(from),
      advice: `leave it out of that agent's configuration, and have this one publish ${from} before it moves`,
    })
  }
  const since = letGoSince(record)
  if (since === undefined || tree === undefined || describes(record, tree)) return keptBy(record, agent)
  throw foreign(`${letGoText(from, since)}, and has changed since`, from, {
    state: leftAsItWas(from),
    advice: `see what it holds; to take it over, configure ${from} with adopt before it moves`,
  })
}
