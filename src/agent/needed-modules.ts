import type { AgentConfiguration } from '../config/types.js'
import { loadHookType } from '../directories/hooks.js'

/*
 * What only some configurations need is a fourteenth of an agent's memory, most of it for hooks that renew static pods. It is loaded with
 * the first configuration that needs it, before that comes into force: a module that cannot be loaded once, as for lack of descriptors,
 * never can.
 */

/** Which static pod uses a path that is to go. */
export const loadHostPathUsers = () => import('../static-pods/host-path-users.js')

/** Rejects where a module cannot be loaded. */
export async function loadNeeded({ directories }: Pick<AgentConfiguration, 'directories'>): Promise<void> {
  const types = new Set(directories.flatMap(({ afterPublish }) => afterPublish.map(({ type }) => type)))
  await Promise.all([...types].map(loadHookType))
  if (directories.some(({ movedFrom, onDrop }) => movedFrom !== undefined || onDrop === 'remove'))
    await loadHostPathUsers()
}
