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
  readonly #isRecord = new Map<string, (name: string) => boolean>()
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
    const { sequenceOf } = namesFor(basename(path))
    this.#isRecord.set(path, (name) => sequenceOf(name) !== undefined)
    void this.#arm(dirname(path))
  }

  forget(path: string): void {
    this.#isRecord.delete(path)
    clearTimeout(this.#timers.get(path))
    this.#timers.delete(path)
    const parent = dirname(path)
    if (!this.#hasPathsIn(parent)) this.#end(parent)
  }

  close(): void {
    for (const path of [...this.#isRecord.keys()]) this.forget(path)
  }

  #hasPathsIn(parent: string): boolean {
    return [...this.#isRecord.keys()].some((path) => dirname(path) === parent)
  }

  async #arm(parent: string): Promise<void> {
    try {
      const { dev, ino } = await stat(parent, { bigint: true })
      const identity = `${dev}:${ino}`
      if (this.#watchers.get(parent)?.identity === identity || !this.#hasPathsIn(parent)) return
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
    for (const [path, isRecord] of this.#isRecord) {
      if (dirname(path) !== parent || this.#timers.has(path)) continue
      if (name !== null && !isRecord(name)) continue
      const report = (): void => {
        this.#timers.delete(path)
        if (this.#asked.has(path)) this.#asked.set(path, true)
        else void this.#ask(path, parent)
      }
      this.#timers.set(path, setTimeout(report, quiet).unref())
    }
  }

  async #ask(path: string, parent: string): Promise<void> {
    this.#asked.set(path, false)
    await this.changed(path)
    const again = this.#asked.get(path)
    this.#asked.delete(path)
    if (again && this.#isRecord.has(path)) this.#notice(parent, null)
  }
}
