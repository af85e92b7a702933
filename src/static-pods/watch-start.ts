/*
 * Since when a revision is being watched, kept across restarts of the monitor: one that is killed again and again would
 * otherwise never come to its timeout. The time is the kernel's, since boot, so that a clock that is set does not count; after
 * a reboot the pod starts anew, and so does the watch. No sync: what a power cut takes is of another boot anyway.
 */
import { createHash } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { StaticPodPlaces } from './last-known-good.js'

interface Mark {
  readonly revision: number
  readonly boot: string
  /** Seconds since boot. */
  readonly since: number
}

function markPath({ resourceDirectory, target }: StaticPodPlaces): string {
  const id = createHash('sha256').update(`${target} monitor`).digest('hex').slice(0, 16)
  return join(resourceDirectory, `.holdfast-${id}.watch`)
}

/** Seconds since boot, as the kernel counts them. */
export async function uptime(): Promise<number> {
  return Number((await readFile('/proc/uptime', 'latin1')).split(' ', 1)[0])
}

/** Seconds since boot at which the watch of this revision began: now, where nothing else is known. */
export async function watchStart(places: StaticPodPlaces, revision: number): Promise<number> {
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim()
  const now = await uptime()
  const known = await readMark(markPath(places))
  if (known?.revision === revision && known.boot === boot && known.since <= now) return known.since
  const path = markPath(places)
  const mark: Mark = { revision, boot, since: now }
  try {
    await writeFile(`${path}.new`, JSON.stringify(mark), { mode: 0o600 })
    await rename(`${path}.new`, path)
  } catch {
    // Without the mark, the watch begins with each start of the monitor.
  }
  return now
}

/** The watch is over. */
export async function endWatch(places: StaticPodPlaces): Promise<void> {
  await rm(markPath(places), { force: true }).catch(() => undefined)
}

async function readMark(path: string): Promise<Mark | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (typeof value !== 'object' || value === null) return undefined
    const { revision, boot, since } = value as Partial<Mark>
    if (typeof revision !== 'number' || typeof boot !== 'string' || typeof since !== 'number') return undefined
    return { revision, boot, since }
  } catch {
    return undefined
  }
}
