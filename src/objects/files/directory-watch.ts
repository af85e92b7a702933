import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Log } from '../../log.js'

/**
 * Calls back when something may have changed in the directory, or when another directory has taken its place. It is a hint and
 * may miss things (no inotify watches left, a file system that sends none): the owner looks from time to time anyway.
 */
export class DirectoryWatch {
  #inside: { readonly identity: string; readonly watcher: FSWatcher } | undefined
  #beside: { readonly identity: string; readonly watcher: FSWatcher } | undefined
  #warned = false

  constructor(
    private readonly directory: string,
    private readonly changed: () => void,
    private readonly log: Log,
  ) {}

  /** Watches what is at the path now: an inotify watch stays with the directory that it began with. Never rejects. */
  async arm(): Promise<void> {
    const name = basename(this.directory)
    this.#inside = await this.#renew(this.#inside, this.directory, this.changed)
    // The parent tells when the directory appears, or is exchanged for another.
    this.#beside = await this.#renew(this.#beside, dirname(this.directory), (file) => {
      if (file === null || file === name) this.changed()
    })
  }

  close(): void {
    this.#inside?.watcher.close()
    this.#beside?.watcher.close()
    this.#inside = this.#beside = undefined
  }

  async #renew(
    current: { readonly identity: string; readonly watcher: FSWatcher } | undefined,
    path: string,
    changed: (file: string | null) => void,
  ): Promise<{ readonly identity: string; readonly watcher: FSWatcher } | undefined> {
    try {
      const { dev, ino } = await stat(path, { bigint: true })
      const identity = `${dev}:${ino}`
      if (identity === current?.identity) return current
      const watcher = watch(path, (_, file) => changed(file))
      watcher.on('error', (error) => this.#warn(path, error))
      current?.watcher.close()
      return { identity, watcher }
    } catch (error) {
      current?.watcher.close()
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#warn(path, error)
      return undefined
    }
  }

  #warn(path: string, error: unknown): void {
    const { code } = error as NodeJS.ErrnoException
    this.log[this.#warned ? 'debug' : 'warn'](
      { path, code },
      'the directory cannot be watched: it is looked at from time to time',
    )
    this.#warned = true
  }
}
