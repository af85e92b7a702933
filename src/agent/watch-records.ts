import { watch, type FSWatcher } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { namesFor } from '../durable/index.js'

/** Milliseconds in which several changes of one record count as one: each publication makes some itself. */
const quiet = 100

/**
 * Notices when a record beside a directory is made or removed, as by an operator who holds the directory or releases it (inotify on the
 * directory's parent). It is a hint that comes early: where it cannot be had, the regular comparison sees the same.
 */
export class RecordWatch {
  /** By parent. An inotify watch stays with the directory that it started with, whatever its name becomes. */
  readonly #watchers = new Map<string, { readonly identity: string; readonly watcher: FSWatcher }>()
  /** The paths in each parent, by how the names of their records begin: a publication makes a dozen changes beside hundreds of them. */
  readonly #paths = new Map<string, Map<string, string>>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  /** Paths that `changed` has not answered for yet; true: they have changed again. */
  readonly #asked = new Map<string, boolean>()

  /** `changed` never rejects, and is not called again for a path before it has answered. */
  constructor(readonly changed: (path: string) => Promise<void>) {}

  /**
   * Watches beside this directory, whose disk has just answered. Where its parent did not exist yet, or was replaced by another one, this is
   * called again once it is there.
   */
  follow(path: string): void {
    const parent = dirname(path)
    const paths = this.#paths.get(parent) ?? new Map<string, string>()
    this.#paths.set(parent, paths)
    paths.set(beginningFor(path), path)
    void this.#arm(parent)
  }

  forget(path: string): void {
    clearTimeout(this.#timers.get(path))
    this.#timers.delete(path)
    const parent = dirname(path)
    const paths = this.#paths.get(parent)
    paths?.delete(beginningFor(path))
    if (paths?.size !== 0) return
    this.#paths.delete(parent)
    this.#end(parent)
  }

  close(): void {
    for (const paths of [...this.#paths.values()]) for (const path of [...paths.values()]) this.forget(path)
  }

  async #arm(parent: string): Promise<void> {
    try {
      const { dev, ino } = await stat(parent, { bigint: true })
      const identity = `${dev}:${ino}`
      if (this.#watchers.get(parent)?.identity === identity || !this.#paths.has(parent)) return
      this.#end(parent)
      const watcher = watch(parent, { persistent: false }, (_, name) => {
        this.#notice(parent, name)
        // Its own name: it was moved or removed, and another one may have its path.
        if (name === basename(parent)) void this.#arm(parent)
      })
      this.#watchers.set(parent, { identity, watcher })
      watcher.on('error', () => this.#end(parent))
    } catch {
      // No parent, or no more watches for this user (fs.inotify.max_user_watches).
      this.#end(parent)
    }
  }

  #end(parent: string): void {
    this.#watchers.get(parent)?.watcher.close()
    this.#watchers.delete(parent)
  }

  #notice(parent: string, name: string | null): void {
    const paths = this.#paths.get(parent)
    if (paths === undefined) return
    if (name === null) for (const path of paths.values()) this.#noticeRecord(path)
    const path = name === null ? undefined : paths.get(beginningOf(name))
    if (path !== undefined) this.#noticeRecord(path)
  }

  #noticeRecord(path: string): void {
    if (this.#timers.has(path)) return
    const report = (): void => {
      this.#timers.delete(path)
      if (this.#asked.has(path)) this.#asked.set(path, true)
      else void this.#ask(path)
    }
    this.#timers.set(path, setTimeout(report, quiet).unref())
  }

  async #ask(path: string): Promise<void> {
    this.#asked.set(path, false)
    await this.changed(path)
    const again = this.#asked.get(path)
    this.#asked.delete(path)
    if (again && this.#paths.get(dirname(path))?.has(beginningFor(path))) this.#noticeRecord(path)
  }
}

/** How the names of the records of this path begin. */
function beginningFor(path: string): string {
  return beginningOf(namesFor(basename(path)).record(1))
}

/** All before the sequence that ends the name of a record; the empty string for what is no record. */
function beginningOf(name: string): string {
  const end = name.lastIndexOf('.') + 1
  return /^[1-9][0-9]{0,14}$/.test(name.slice(end)) ? name.slice(0, end) : ''
}
