import { dirname } from 'node:path'
import type { Log } from '../log.js'
import { DirectoryWatch } from '../directory-watch.js'
import { fingerprint } from '../regular-file.js'

/** Milliseconds that the file has to stay as it is before it counts as written. */
const quiet = 200

/** Milliseconds after which the watch reports a missing file: a program that replaces it may remove it first. */
const longestGone = 2_000

/** Milliseconds between looks that no event has asked for: a file behind a link to another directory sends none. */
const rescan = 10_000

interface ConfigurationWatchOptions {
  readonly file: string
  /** The fingerprint of the configuration in force. */
  readonly seen: string
  /** Looks at intervals, too, for what sends no event. */
  readonly rescans: boolean
  readonly changed: () => void
  /** The file is gone for good, or is there again as it was. */
  readonly gone: (isGone: boolean) => void
  readonly log: Log
}

/**
 * Calls back when the configuration file has become another one: written, renamed over, or changed with the `..data` link of a mounted
 * ConfigMap. It waits for a file that is missing for a moment, or still being written.
 */
export class ConfigurationWatch {
  readonly #options: ConfigurationWatchOptions
  readonly #watch: DirectoryWatch
  readonly #rescan: NodeJS.Timeout | undefined
  #seen: string
  #timer: NodeJS.Timeout | undefined
  #candidate: string | undefined
  /** Since when the file is gone, by performance.now(). */
  #goneSince: number | undefined
  #isGone = false
  #looking = false
  #closed = false

  constructor(options: ConfigurationWatchOptions) {
    this.#options = options
    this.#seen = options.seen
    this.#watch = new DirectoryWatch(dirname(options.file), () => this.#soon(), options.log)
    if (options.rescans) this.#rescan = setInterval(() => void this.#look(), rescan).unref()
    void this.#look()
  }

  /** The file has been read in this state. */
  read(seen: string): void {
    this.#seen = seen
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#rescan)
    clearTimeout(this.#timer)
    this.#watch.close()
  }

  #soon(): void {
    if (this.#closed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.#look()
    }, quiet)
  }

  async #look(): Promise<void> {
    if (this.#looking) {
      this.#soon()
      return
    }
    this.#looking = true
    // Another directory may have taken the place of the watched one.
    await this.#watch.arm()
    const now = await fingerprint(this.#options.file)
    this.#looking = false
    if (this.#closed) return
    const before = this.#candidate
    this.#candidate = now
    this.#report(now === 'ENOENT')
    if (now === this.#seen || now === 'ENOENT') return
    if (now !== before) {
      this.#soon()
      return
    }
    this.#seen = now
    this.#options.changed()
  }

  #report(isGone: boolean): void {
    const now = performance.now()
    this.#goneSince = isGone ? (this.#goneSince ?? now) : undefined
    if (this.#goneSince !== undefined && now - this.#goneSince < longestGone) {
      this.#soon()
      return
    }
    if (isGone === this.#isGone) return
    this.#isGone = isGone
    this.#options.gone(isGone)
  }
}
