/** One scan of the directory: which files are there, in which state. */
import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isWholeSecond } from '../../change-times.js'
import { codeOf } from '../../errors.js'
import { fingerprintOf } from '../../regular-file.js'
import { performance } from 'node:perf_hooks'

/** Files of one directory. More would be a mistake in the path. */
const maximumFiles = 10_000

export interface DirectoryScan {
  /** When the scan started: its findings are at least as new. */
  readonly startedAt: ScanTime
  /** Which directory this is: it may be exchanged, and a mounted ConfigMap changes with its `..data` link. */
  readonly identity: string
  readonly stamps: ReadonlyMap<string, Stamp>
  /** Names of other files, but for those with a leading dot. */
  readonly passedOver: readonly string[]
}

/** An instant, by both clocks: milliseconds since the epoch, and performance.now(). */
interface ScanTime {
  readonly wall: number
  readonly monotonic: number
}

/** The state of a file, as far as it can be known without reading it. */
export interface Stamp {
  readonly id: string
  /** Milliseconds since the epoch; where the file system keeps whole seconds, the end of that second. */
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
export function stampVersion(name: string, { size, modifiedAt }: Stamp): string {
  return `file:${createHash('sha256')
    .update(JSON.stringify([name, size, modifiedAt]))
    .digest('hex')
    .slice(0, 32)}`
}

export function stampFrom(stats: BigIntStats): Stamp {
  const { size, mtimeNs, ctimeNs } = stats
  return {
    id: fingerprintOf(stats),
    changedAt: Number(ctimeNs / 1_000_000n) + (isWholeSecond(ctimeNs) ? 1000 : 0),
    size: Number(size),
    modifiedAt: String(mtimeNs),
  }
}

interface SeenFile {
  readonly stamp: string
  /** performance.now() when the first look at this stamp was over. */
  readonly since: number
  /** performance.now() of the first look that found it changed. */
  readonly changingSince: number
}

/** Whether a file has come to rest: the source must not read a file that a program still writes. */
export class FileStability {
  readonly #seen = new Map<string, SeenFile>()
  readonly #missing = new Map<string, number>()

  constructor(
    private readonly quiet: number,
    private readonly patience: number,
  ) {}

  /**
   * `stable`: its inode has not changed for long enough. `changing`: not yet. `restless`: it has been changing for so long
   * that the others should no longer wait for it. What counts is the time until the look started: on a machine that is slow to
   * finish it, the file may have been written to again.
   */
  state(name: string, stamp: Stamp, startedAt: ScanTime, now = performance.now()): 'stable' | 'changing' | 'restless' {
    this.#missing.delete(name)
    const before = this.#seen.get(name)
    const since = before?.stamp === stamp.id ? before.since : now
    const changingSince = before?.changingSince ?? now
    // The status-change time cannot be set by hand; but the clock can, so the time between two looks counts as well.
    if (startedAt.wall - stamp.changedAt >= this.quiet || startedAt.monotonic - since >= this.quiet) {
      this.#seen.delete(name)
      return 'stable'
    }
    this.#seen.set(name, { stamp: stamp.id, since, changingSince })
    return now - changingSince >= this.patience ? 'restless' : 'changing'
  }

  /** Whether a file that is missing now was missing long enough ago already. */
  isGone(name: string, startedAt: ScanTime, now = performance.now()): boolean {
    const since = this.#missing.get(name) ?? now
    this.#missing.set(name, since)
    return startedAt.monotonic - since >= this.quiet
  }

  /** Forgets about files other than these. */
  keepOnly(names: readonly string[]): void {
    const kept = new Set(names)
    for (const name of this.#seen.keys()) if (!kept.has(name)) this.#seen.delete(name)
    this.#missing.clear()
  }
}
