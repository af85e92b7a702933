import type { RecordBody } from './record-fields.js'

/*
 * Whose a target is, beyond what published it: the agent that keeps it, and when the last one let it go. Each names the publication that
 * it is about by its time: a version that does not know it carries it into the record of another publication, of which it says nothing.
 */

/** What a record says of that. */
export type KeptRecord = Partial<Pick<RecordBody, 'agent' | 'letGo' | 'publishedAt' | 'publisher'>>

/** undefined: no agent keeps it, or its record does not say which. */
export function agentOf({ agent, publishedAt }: KeptRecord): string | undefined {
  return agent?.publishedAt === publishedAt ? agent?.id : undefined
}

/** When it was let go; undefined: it was not, or was published since. */
export function letGoSince({ letGo, publishedAt }: KeptRecord): number | undefined {
  return letGo?.publishedAt === publishedAt ? letGo?.since : undefined
}

/** Whether its record names another agent than this one; a record that names none, and an agent without an identity, are no others. */
export function isOtherAgents(record: KeptRecord, agent: string | undefined): boolean {
  const keeper = agentOf(record)
  return keeper !== undefined && agent !== undefined && keeper !== agent
}

/** For people: the beginning of a sentence. */
export function letGoText(path: string, since: number | Date): string {
  return `${path} left the configuration at ${new Date(since).toISOString()}`
}
