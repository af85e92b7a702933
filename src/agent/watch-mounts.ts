import { sleep } from '../deadline.js'
import * as mountTable from '../mountinfo.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'

/** Milliseconds in which several changes of the mounts count as one: a pod that starts makes dozens. */
const quiet = 1_000

/**
 * Notices when another mount covers a directory than before, or none any more: no inotify watch tells that. The kernel says when the mounts
 * of this process change, so that an agent at rest does not wake up for it. Follows no symbolic links.
 */
export class MountWatch {
  readonly #covers = new Map<string, string>()

  constructor(
    /** The configured directories. */
    private readonly paths: () => readonly string[],
    private readonly changed: (path: string) => void,
    private readonly signal: AbortSignal,
    private readonly log: Log,
  ) {}

  /** Notes what covers the directories that were not configured before, so that a mount after it is news. */
  note(): void {
    this.#look(
      (path) => !this.#covers.has(path),
      () => undefined,
    )
  }

  /**
   * Reports each directory that another mount covers than when it was noted, now and from then on. Where the kernel does not report mounts,
   * the regular comparison sees the same.
   */
  start(): void {
    try {
      const events = mountTable.watchMounts(async () => {
        await sleep(quiet, { signal: this.signal, ref: false }).catch(() => undefined)
        if (!this.signal.aborted) this.#lookAll()
      })
      this.signal.addEventListener('abort', () => events.close(), { once: true })
    } catch (error) {
      this.log.warn(
        {},
        `a disk that is mounted over a directory is noticed with the next comparison only: ${messageOf(error)}`,
      )
    }
    this.#lookAll()
  }

  #lookAll(): void {
    this.#look(() => true, this.changed)
  }

  #look(isLookedAt: (path: string) => boolean, changed: (path: string) => void): void {
    let table: ReturnType<typeof mountTable.mounts>
    try {
      table = mountTable.mounts()
    } catch {
      // The process is out of descriptors; the next change of the mounts brings another look.
      return
    }
    const paths = this.paths()
    for (const path of paths.filter(isLookedAt)) {
      const mount = mountTable.mountAbove(path, table)
      const cover = mount === undefined ? '' : `${mount.id} ${mount.device} ${mount.root} ${mount.mountPoint}`
      if (this.#covers.get(path) !== cover) changed(path)
      this.#covers.set(path, cover)
    }
    if (this.#covers.size > paths.length) {
      for (const path of this.#covers.keys()) if (!paths.includes(path)) this.#covers.delete(path)
    }
  }
}
