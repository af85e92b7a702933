import { dirname } from 'node:path'
import type { DirectoryConfiguration } from '../../config/types.js'
import {
  agentOf,
  atPlace,
  NodeFileSystem,
  readPublication,
  removePublished,
  sameTarget,
  unprovenAt,
} from '../../durable/index.js'
import type { Log } from '../../log.js'
import { describeHostPathUser } from '../../static-pods/host-path-users.js'
import { warnUnproven } from '../../unproven.js'

/** The disk says that a directory stays, although it has left the configuration. */
export class Stays extends Error {}

/**
 * Removes a directory that has left the configuration, once no process uses it. `configured`: the directories that stay, by any of their
 * paths.
 * @throws Stays; any other error may have gone the next time
 */
export async function removeDropped(
  path: string,
  signal: AbortSignal,
  log: Log,
  configured: () => readonly DirectoryConfiguration[],
  agent: string | undefined,
): Promise<void> {
  const byHand = `run "holdfast remove ${path}" if nobody needs it`
  const stays = (why: string): Error => new Stays(`${path} is not configured any more, and stays: ${why}`)
  if ((await readPublication(path)) === undefined) {
    if (await isBare(path)) throw new Error(`${dirname(path)} is not there, or is empty: its disk may not be mounted`)
    throw stays('no record beside it can be read')
  }
  await removePublished(path, {
    signal,
    log,
    usedBy: () => describeHostPathUser(path),
    async confirm(record) {
      const { publisher, onDrop } = record
      if (publisher !== 'agent' || onDrop !== 'remove') throw stays('its record does not say onDrop: remove')
      const same = await sameTarget(
        path,
        configured().map((directory) => directory.path),
      )
      if (same !== undefined) throw stays(`it is the same directory as ${same}, which is configured`)
      const keeper = agentOf(record)
      if (keeper === undefined) throw stays(`its record does not say which agent has published it; ${byHand}`)
      if (keeper !== agent) throw stays('another agent publishes it now')
    },
  })
  if ((await unprovenAt(path)).unproven) warnUnproven(log, path)
}

/** Whether a directory would be in a bare mount point, for all that is there. */
export async function isBare(path: string): Promise<boolean> {
  const fs = new NodeFileSystem()
  return atPlace(fs, path, async ({ anchor, missing }) => missing.length > 0 || (await fs.list(anchor)).length === 0)
}
