import { dirname } from 'node:path'
import type { Log } from '../log.js'
import { DirectoryWatch } from '../objects/files/directory-watch.js'
import { fingerprint } from '../regular-file.js'

/** Milliseconds that the file has to stay as it is before it counts as written. */
const settle = 200

/** Milliseconds between looks that no event has asked for: a file behind a link to another directory sends none. */
const rescan = 10_000

/**
 * Calls back when the configuration file has become another one: written, renamed over, or changed with the `..data` link of a mounted
 * ConfigMap. A file that is gone for a moment, or that is being written, is waited for.
 */
export class ConfigurationWatch {
  readonly #watch: DirectoryWatch
  readonly #rescan: NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined
  #candidate: string | undefined
  #looking = false
  #closed = false

  /** @param seen the fingerprint of what is in force */
  constructor(
    private readonly file: string,
    private seen: string,
    private readonly changed: () => void,
    log: Log,
  ) {
    this.#watch = new DirectoryWatch(dirname(file), () => this.#soon(), log)
    this.#rescan = setInterval(() => void this.#look(), rescan).unref()
    void this.#look()
  }

  /** The file has been read in this state. */
  read(seen: string): void {
    this.seen = seen
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
    }, settle)
  }

  async #look(): Promise<void> {
    if (this.#looking) {
      this.#soon()
      return
    }
    this.#looking = true
    // Another directory may have taken the place of the one that was watched.
    await this.#watch.arm()
    const now = await fingerprint(this.file)
    this.#looking = false
    if (this.#closed) return
    const before = this.#candidate
    this.#candidate = now
    if (now === this.seen || now === 'ENOENT') return
    if (now !== before) {
      this.#soon()
      return
    }
    this.seen = now
    this.changed()
  }
}
