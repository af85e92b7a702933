/*
 * Keeps the start of a revision's watch across restarts of the monitor: a monitor that is killed again and again would otherwise
 * never come to its timeout. The time is the kernel's, since boot, so that a clock that is set does not count; after a reboot the
 * pod starts again, and so does the watch. No sync: a power cut takes only marks of a boot that has ended.
 */
import { codeOf, messageOf } from '../../errors.js'
import { createHash } from 'node:crypto'
import { lstat, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileSystem } from '../../durable/file-system.js'
import type { Log } from '../../log.js'
import { liveManifestPath, type StaticPodPlaces } from './last-known-good.js'

interface Mark {
  readonly revision: number
  readonly boot: string
  /** Seconds since boot. */
  readonly since: number
  /**
   * Tells the live manifest from a later one of the same revision: a mark that could not be removed says nothing of the time of that
   * one. undefined: an earlier version of holdfast wrote it.
   */
  readonly live?: string | undefined
}

export class WatchStart {
  readonly #path: string
  readonly #manifest: string
  /** Seconds since boot. Kept here too: where the file cannot be written, the time of this process still counts. */
  #since: number | undefined
  #hasWarned = false

  constructor(
    places: StaticPodPlaces,
    private readonly revision: number,
    private readonly fs: Pick<FileSystem, 'uptime'>,
    private readonly log: Log,
  ) {
    const { resourceDirectory, target } = places
    const id = createHash('sha256').update(`${target} monitor`).digest('hex').slice(0, 16)
    this.#path = join(resourceDirectory, `.holdfast-${id}.watch`)
    this.#manifest = liveManifestPath(places)
  }

  /** Milliseconds since the watch began; it begins with the first call. */
  async elapsed(): Promise<number> {
    const now = this.fs.uptime()
    this.#since ??= await this.#begin(now / 1000)
    return now - this.#since * 1000
  }

  /** The watch is over; the next call of `elapsed` begins another one. */
  async end(): Promise<void> {
    this.#since = undefined
    await rm(this.#path).catch(() => undefined)
  }

  async #begin(now: number): Promise<number> {
    const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim()
    const known = await readMark(this.#path)
    const live = await manifestIdentity(this.#manifest)
    const isSame = known?.revision === this.revision && (known.live === undefined || known.live === live)
    if (isSame && known.boot === boot && known.since <= now) return known.since
    const mark: Mark = { revision: this.revision, boot, since: now, live }
    try {
      await writeFile(`${this.#path}.new`, JSON.stringify(mark), { mode: 0o600 })
      await rename(`${this.#path}.new`, this.#path)
    } catch (error) {
      const [path, code] = [this.#path, codeOf(error)]
      const why = `could not write ${path} (${code ?? messageOf(error)})`
      if (!this.#hasWarned)
        this.log.warn({ path, code }, `${why}: if the monitor is restarted, its timeout starts over`)
      this.#hasWarned = true
    }
    return now
  }
}

/** ext4 gives the number of an inode out again at once: its birth tells the two apart. */
async function manifestIdentity(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined)
  return found && `${found.ino}:${found.birthtimeNs}`
}

async function readMark(path: string): Promise<Mark | undefined> {
  try {
    // Any other JSON value lacks these fields, and `null` throws.
    const { revision, boot, since, live } = JSON.parse(await readFile(path, 'utf8')) as Partial<Mark>
    if (typeof revision !== 'number' || typeof boot !== 'string' || typeof since !== 'number') return undefined
    return { revision, boot, since, live }
  } catch {
    return undefined
  }
}
