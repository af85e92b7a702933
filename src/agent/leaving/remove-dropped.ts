import { dirname } from 'node:path'
import {
  atPlace,
  keeper,
  system,
  readPublication,
  removePublished,
  sameTarget,
  unprovenAt,
} from '../../durable/index.js'
import type { Log } from '../../log.js'
import { warnUnproven } from '../../unproven.js'
import { loadHostPathUsers } from '../needed-modules.js'

/** The disk says that a directory stays, although it has left the configuration. */
export class Stays extends Error {}

interface Dropping {
  readonly signal: AbortSignal
  readonly log: Log
  /** The directories that stay, by any of their paths. */
  readonly configured: () => readonly string[]
  /** The record could not say yet that the directory has left. */
  readonly isOwed: () => boolean
  readonly agent: string | undefined
}

/**
 * Removes a directory that has left the configuration, once no process uses it: only what this agent has published and let go, and no program has
 * published since.
 * @throws Stays; anything else may be otherwise the next time
 */
export async function removeDropped(path: string, dropping: Dropping): Promise<void> {
  const { signal, log, configured, isOwed, agent } = dropping
  const byHand = `run "holdfast remove ${path}" if nobody needs it`
  const stays = (why: string): Error => new Stays(`${path} is not configured any more, and stays: ${why}`)
  if ((await readPublication(path)) === undefined) {
    if (await isBare(path)) throw new Error(`${dirname(path)} is not there, or is empty: its disk may not be mounted`)
    throw stays('no record beside it can be read')
  }
  await removePublished(path, {
    signal,
    log,
    usedBy: async () => (await loadHostPathUsers()).describeHostPathUser(path),
    async confirm(record) {
      if (record.publisher !== 'agent') throw stays('no agent has published what it holds')
      const same = await sameTarget(path, configured())
      if (same !== undefined) throw stays(`it is the same directory as ${same}, which is configured`)
      const agentNow = keeper.agentOf(record)
      if (agentNow === undefined) throw stays(`its record does not say which agent has published it; ${byHand}`)
      if (agentNow !== agent) throw stays('another agent publishes it now')
      if (keeper.letGoSince(record) !== undefined || record.removing !== undefined) return
      if (isOwed()) throw new Error('its record does not say yet that it has left the configuration')
      throw stays(`it was published again since; ${byHand}`)
    },
  })
  if ((await unprovenAt(path)).unproven) warnUnproven(log, path)
}

/** Whether a directory would be in a bare mount point, for all that is there. */
export async function isBare(path: string): Promise<boolean> {
  return atPlace(
    system,
    path,
    async ({ anchor, missing }) => missing.length > 0 || (await system.list(anchor)).length === 0,
  )
}
