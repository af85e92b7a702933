import { type FSWatcher, watch } from 'node:fs'
import { readlink, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Log } from './log.js'

/** Links that are followed on the way to the directory. Source: Linux, include/linux/namei.h, MAXSYMLINKS. */
const mostLinks = 40

interface WatchedDirectory {
  readonly identity: string
  readonly watcher: FSWatcher
  /** Names whose events count; undefined: all. */
  names: ReadonlySet<string> | undefined
}

/**
 * Calls back when something may have changed in the directory, or in the file, or when another one has taken its place: by its own name, or
 * by that of a link on the way to it, such as the `..data` of a mounted ConfigMap. It is a hint and may miss things (no inotify
 * watches left, a file system that sends none): the owner looks from time to time anyway.
 */
export class DirectoryWatch {
  /** By path. */
  #watched = new Map<string, WatchedDirectory>()
  #warned = false
  #closed = false

  constructor(
    private readonly directory: string,
    private readonly changed: () => void,
    private readonly log: Log,
  ) {}

  /**
   * Watches what the path leads to now: an inotify watch stays with its directory. Never rejects. Answers whether all of it is watched.
   */
  async arm(): Promise<boolean> {
    const desired = new Map<string, ReadonlySet<string> | undefined>(await lookups(this.directory))
    desired.set(this.directory, undefined)
    for (const [path, { watcher }] of this.#watched) {
      if (desired.has(path)) continue
      watcher.close()
      this.#watched.delete(path)
    }
    let isWhole = true
    for (const [path, names] of desired) isWhole = (await this.#renew(path, names)) && isWhole
    return isWhole
  }

  close(): void {
    this.#closed = true
    for (const { watcher } of this.#watched.values()) watcher.close()
    this.#watched.clear()
  }

  async #renew(path: string, names: ReadonlySet<string> | undefined): Promise<boolean> {
    const current = this.#watched.get(path)
    try {
      const { dev, ino } = await stat(path, { bigint: true })
      const identity = `${dev}:${ino}`
      if (this.#closed) return false
      if (identity === current?.identity) {
        current.names = names
        return true
      }
      const watcher = watch(path)
      const watched: WatchedDirectory = { identity, watcher, names }
      watcher.on('change', (_, file) => {
        if (typeof file !== 'string' || (watched.names?.has(file) ?? true)) this.changed()
      })
      watcher.on('error', (error) => this.#warn(path, error))
      this.#watched.set(path, watched)
      current?.watcher.close()
      return true
    } catch (error) {
      this.#watched.delete(path)
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#warn(path, error)
      current?.watcher.close()
      return false
    }
  }

  #warn(path: string, error: unknown): void {
    const { code } = error as NodeJS.ErrnoException
    this.log[this.#warned ? 'debug' : 'warn'](
      { path, code },
      'could not watch the directory: holdfast reads it at intervals instead',
    )
    this.#warned = true
  }
}

/**
 * The directories in which another entry may take the watched directory's place, with the names that lead to it: its own in its
 * parent, and each link's on the way to it. A directory that is moved itself says its own. Those above are not watched: each write to any
 * file in `/tmp` or `/var/log` would wake the process up.
 */
async function lookups(directory: string): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>()
  let at = '/'
  let rest = pathParts(directory)
  for (let links = 0; links <= mostLinks;) {
    const [name, ...further] = rest
    if (name === undefined) break
    rest = further
    if (name === '..') {
      at = dirname(at)
      continue
    }
    const target = await readlink(join(at, name)).catch(() => undefined)
    if (target !== undefined || further.length === 0) {
      found.set(at, (found.get(at) ?? new Set([basename(at)])).add(name))
    }
    if (target === undefined) at = join(at, name)
    else {
      links += 1
      if (target.startsWith('/')) at = '/'
      rest = [...pathParts(target), ...further]
    }
  }
  return found
}

function pathParts(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.')
}
