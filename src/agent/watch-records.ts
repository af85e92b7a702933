import { watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'
import { namesFor } from '../durable/index.js'

/** Milliseconds in which several changes of one record count as one: each publication makes some itself. */
const quiet = 100

/**
 * Notices when a record beside a directory is made or removed, as by an operator who holds the directory or releases it (inotify on the
 * directory's parent). It is a hint that comes early: where it cannot be had, the regular comparison sees the same.
 */
export class RecordWatch {
  readonly #watchers = new Map<string, FSWatcher>()
  readonly #isRecord = new Map<string, (name: string) => boolean>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  /** Paths that `changed` has not answered for yet; true: they have changed again. */
  readonly #asked = new Map<string, boolean>()

  /** `changed` never rejects, and is not called again for a path before it has answered. */
  constructor(readonly changed: (path: string) => Promise<void>) {}

  /** Watches beside this directory, whose disk has just answered. Where its parent did not exist yet, this is called again once it does. */
  follow(path: string): void {
    const { sequenceOf } = namesFor(basename(path))
    this.#isRecord.set(path, (name) => sequenceOf(name) !== undefined)
    const parent = dirname(path)
    if (this.#watchers.has(parent)) return
    try {
      const watcher = watch(parent, { persistent: false }, (_, name) => this.#notice(parent, name))
      this.#watchers.set(parent, watcher)
      watcher.on('error', () => this.#end(parent))
    } catch {
      // No parent yet, or no more watches for this user (fs.inotify.max_user_watches).
    }
  }

  forget(path: string): void {
    this.#isRecord.delete(path)
    clearTimeout(this.#timers.get(path))
    this.#timers.delete(path)
    const parent = dirname(path)
    if (![...this.#isRecord.keys()].some((other) => dirname(other) === parent)) this.#end(parent)
  }

  close(): void {
    for (const path of [...this.#isRecord.keys()]) this.forget(path)
  }

  #end(parent: string): void {
    this.#watchers.get(parent)?.close()
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
