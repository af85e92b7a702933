/** One scan of the directory: which files are there, in which state. */
import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../errors.js'
import { fingerprintOf } from '../../regular-file.js'

/** Files of one directory. More would be a mistake in the path. */
const maximumFiles = 10_000

export interface DirectoryScan {
  /** When the scan started: its findings are at least as new. */
  readonly startedAt: Moment
  /** Which directory this is: it may be exchanged, and a mounted ConfigMap changes with its `..data` link. */
  readonly identity: string
  readonly stamps: ReadonlyMap<string, Stamp>
  /** Names of other files, but for those with a leading dot. */
  readonly passedOver: readonly string[]
}

/** An instant, by both clocks: milliseconds since the epoch, and performance.now(). */
export interface Moment {
  readonly wall: number
  readonly monotonic: number
}

/** The state of a file, as far as it can be known without reading it. */
export interface Stamp {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly changedAt: number
  readonly size: number
  /** Nanoseconds since the epoch, in digits. */
  readonly modifiedAt: string
}

/**
 * The files of the directory that hold objects: *.yaml, *.yml and *.json. Names with a leading dot are editors' and other
 * programs' business.
 * @throws an errno error where the directory cannot be read
 */
export async function scanDirectory(directory: string): Promise<DirectoryScan> {
  const startedAt = { wall: Date.now(), monotonic: performance.now() }
  const identity = await identify(directory)
  const all = (await readdir(directory)).filter((name) => !name.startsWith('.')).sort()
  const names = all.filter((name) => /.\.(ya?ml|json)$/.test(name))
  if (names.length > maximumFiles) {
    throw new Error(`${directory}: holds ${names.length} files; at most ${maximumFiles} are allowed`)
  }
  const stamps = new Map<string, Stamp>()
  for (const name of names) {
    const stamp = await stampOf(join(directory, name))
    if (stamp) stamps.set(name, stamp)
  }
  return { startedAt, identity, stamps, passedOver: all.filter((name) => !names.includes(name)) }
}

/** @throws an errno error where the directory cannot be read */
export async function identify(directory: string): Promise<string> {
  const { dev, ino, ctimeNs } = await stat(directory, { bigint: true })
  const data = await readlink(join(directory, '..data')).catch(() => '')
  // An inode number may come back in another directory; and a change of the entries makes it another version, too.
  return `${dev}:${ino}:${ctimeNs}:${data}`
}

async function stampOf(path: string): Promise<Stamp | undefined> {
  try {
    const stats = await stat(path, { bigint: true })
    return stats.isFile() ? stampFrom(stats) : undefined
  } catch (error) {
    // Gone since readdir, or a link that leads nowhere: it is not there.
    if (codeOf(error) === 'ENOENT') return undefined
    // The attempt to read it reports the errno.
    return { id: `unreadable:${codeOf(error) ?? ''}`, changedAt: 0, size: 0, modifiedAt: '' }
  }
}

/**
 * The version of a file's objects, by its name, size and time of modification: the same until a program writes it. A digest of
 * its content would leave the node with status and logs, and with it a way to try out what a short secret may be.
 */
export function versionOf(name: string, { size, modifiedAt }: Stamp): string {
  return `file:${createHash('sha256')
    .update(JSON.stringify([name, size, modifiedAt]))
    .digest('hex')
    .slice(0, 32)}`
}

export function stampFrom(stats: BigIntStats): Stamp {
  const { size, mtimeNs, ctimeNs } = stats
  return {
    id: fingerprintOf(stats),
    changedAt: Number(ctimeNs / 1_000_000n),
    size: Number(size),
    modifiedAt: String(mtimeNs),
  }
}
