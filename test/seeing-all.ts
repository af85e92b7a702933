/** Programs that may look at every process, as an agent on a node does: they keep old content in use, and remove the rest. */
import { spawnSync } from 'node:child_process'
import { usesOf } from '../src/durable/index.js'

/**
 * On some test machines not even root may look at process 1. In a mount namespace of its own, to which later mounts come, a program finds its parent in the place of
 * process 1, as the kernel tells of it.
 */
const within = [
  '--mount',
  '--propagation',
  'slave',
  'sh',
  '-c',
  'mount --bind "/proc/$PPID" /proc/1 && exec "$@"',
  'sh',
]

/** Words to put before a command, which then sees all processes of this machine; undefined: none would. */
export async function seeingAll(): Promise<readonly string[] | undefined> {
  const { denied, otherPidNamespace, hidden } = (await usesOf([])).unseen
  if (otherPidNamespace || hidden || denied.some(({ pid }) => pid !== 1)) return undefined
  if (denied.length === 0) return []
  const prefix = ['unshare', ...within]
  return spawnSync(prefix[0] ?? '', [...prefix.slice(1), 'readlink', '/proc/1/root']).status === 0 ? prefix : undefined
}
