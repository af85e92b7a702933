import { watch, type FSWatcher } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { namesFor } from '../durable/index.js'
import { codeOf } from '../errors.js'
import { silent, type Log } from '../log.js'

/** Milliseconds in which several changes of one record count as one: each publication makes some itself. */
const quiet = 100

/** Milliseconds between looks where the kernel gives no watch, and the limit that it has reached then. */
const lookInterval = 10_000
const limits: Readonly<Record<string, string>> = {
  EMFILE: 'fs.inotify.max_user_instances',
  ENOSPC: 'fs.inotify.max_user_watches',
}

interface WatchedInode {
  /** An inotify watch follows the directory that it started with, also under another name. */
  readonly identity: string
  readonly watcher: FSWatcher
}

/**
 * Notices a new or removed record beside a directory, as at an operator's hold or release, and names in the directory, the directory or its
 * parent that come or go (inotify on the directory and on its parent). It is an early hint: without it, the regular comparison sees the
 * same. Where this user has no watches left, it says so once, and looks every ten seconds.
 */
export class TargetWatch {
  /** By the path that is watched: of a parent, or of a directory. */
  readonly #watched = new Map<string, WatchedInode>()
  /** The paths in each parent, by how the names of their records begin: a publication makes a dozen changes beside hundreds of them. */
  readonly #paths = new Map<string, Map<string, string>>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  /** Paths that `changed` has not answered for yet; true: they have changed again. */
  readonly #asked = new Map<string, boolean>()
  /** What is watched no more, or not yet, for want of a watch. */
  readonly #unwatched = new Set<string>()
  #hasWarned = false
  #looks: NodeJS.Timeout | undefined

  /** `changed` never rejects, and is not called again for a path before it has answered. */
  constructor(
    readonly changed: (path: string) => Promise<void>,
    private readonly signal: AbortSignal,
    private readonly log: Log = silent,
  ) {
    signal.addEventListener('abort', () => this.#close(), { once: true })
  }

  /**
   * Watches beside and in this directory, whose disk has just answered. Where its parent did not exist yet, or was replaced by another one,
   * this is called again once it is there.
   */
  follow(path: string): void {
    if (this.signal.aborted) return
    const parent = dirname(path)
    const paths = this.#paths.get(parent) ?? new Map<string, string>()
    this.#paths.set(parent, paths)
    paths.set(beginningFor(path), path)
    void this.#armParent(parent)
    void this.#armTarget(path)
  }

  forget(path: string): void {
    clearTimeout(this.#timers.get(path))
    this.#timers.delete(path)
    this.#end(path)
    const parent = dirname(path)
    const paths = this.#paths.get(parent)
    paths?.delete(beginningFor(path))
    if (paths?.size !== 0) return
    this.#paths.delete(parent)
    this.#end(parent)
  }

  #close(): void {
    clearInterval(this.#looks)
    for (const paths of [...this.#paths.values()]) for (const path of [...paths.values()]) this.forget(path)
  }

  async #armParent(parent: string): Promise<void> {
    const isNeeded = (): boolean => this.#paths.has(parent)
    const began = await this.#arm(parent, isNeeded, (event, name) => {
      this.#noticeBeside(parent, event, name)
      // Its own name: it was moved or removed, and another one may have its path.
      if (name === basename(parent)) void this.#armParent(parent)
    })
    // Its entries may have gone before it was watched.
    if (began !== 'as before') for (const path of this.#paths.get(parent)?.values() ?? []) this.#notice(path)
  }

  async #armTarget(path: string): Promise<void> {
    const began = await this.#arm(
      path,
      () => this.#isFollowed(path),
      (event) => {
        if (event === 'rename') this.#notice(path)
      },
    )
    // It may have been emptied before it was watched.
    if (began === 'anew') this.#notice(path)
  }

  async #arm(
    directory: string,
    isNeeded: () => boolean,
    heard: (event: string, name: string | null) => void,
  ): Promise<'as before' | 'anew' | 'not'> {
    try {
      const { dev, ino } = await stat(directory, { bigint: true })
      const identity = `${dev}:${ino}`
      if (this.#watched.get(directory)?.identity === identity) return 'as before'
      this.#end(directory)
      if (!isNeeded()) return 'not'
      const watcher = watch(directory, { persistent: false }, heard)
      this.#watched.set(directory, { identity, watcher })
      watcher.on('error', () => this.#end(directory))
      this.#unwatched.delete(directory)
      return 'anew'
    } catch (error) {
      this.#end(directory)
      const limit = limits[codeOf(error) ?? '']
      // Otherwise it is not there.
      if (limit !== undefined && isNeeded()) this.#lacksWatch(directory, codeOf(error), limit)
      return 'not'
    }
  }

  #lacksWatch(path: string, code: string | undefined, limit: string): void {
    this.#unwatched.add(path)
    const message = `the kernel gives no watch of ${path}: holdfast looks every ${lookInterval / 1000} s whether a directory is gone, or was held; raise ${limit}`
    this.log[this.#hasWarned ? 'debug' : 'warn']({ path, code }, message)
    this.#hasWarned = true
    this.#looks ??= setInterval(() => this.#lookAtUnwatched(), lookInterval).unref()
  }

  #lookAtUnwatched(): void {
    if (this.#unwatched.size === 0) {
      clearInterval(this.#looks)
      this.#looks = undefined
    }
    for (const path of this.#unwatched) {
      // A look at a path tries to watch it again.
      if (this.#isFollowed(path)) this.#notice(path)
      else if (this.#paths.has(path)) void this.#armParent(path)
      else this.#unwatched.delete(path)
    }
  }

  #end(directory: string): void {
    this.#watched.get(directory)?.watcher.close()
    this.#watched.delete(directory)
  }

  #isFollowed(path: string): boolean {
    return this.#paths.get(dirname(path))?.has(beginningFor(path)) === true
  }

  #noticeBeside(parent: string, event: string, name: string | null): void {
    const paths = this.#paths.get(parent)
    if (paths === undefined) return
    if (name === null) for (const path of paths.values()) this.#notice(path)
    if (name === null) return
    const target = join(parent, name)
    // Itself came, or went: what only changes in it changes its time.
    if (event === 'rename' && this.#isFollowed(target)) this.#notice(target)
    const path = paths.get(beginningOf(name))
    if (path !== undefined) this.#notice(path)
  }

  #notice(path: string): void {
    if (this.#timers.has(path) || !this.#isFollowed(path)) return
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
    if (!this.#isFollowed(path)) return
    // Its disk has just answered, and it may be another one by the same name.
    void this.#armTarget(path)
    if (again) this.#notice(path)
  }
}

/** How the names of the records of this path begin. */
function beginningFor(path: string): string {
  return beginningOf(namesFor(basename(path)).record(1))
}

/** The part of a record's name before its sequence; the empty string for another name. */
function beginningOf(name: string): string {
  const end = name.lastIndexOf('.') + 1
  return /^[1-9][0-9]{0,14}$/.test(name.slice(end)) ? name.slice(0, end) : ''
}
