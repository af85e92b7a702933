/** Time since boot that passes only while a watch rests: no machine is too slow for it, and no test waits for it. */
import { setImmediate as turn } from 'node:timers/promises'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'

let now = new NodeFileSystem().uptime()

export const uptime = (): number => now

/** What this process does meanwhile has its turn. */
export async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  now += milliseconds
  await turn(undefined, { signal })
}
