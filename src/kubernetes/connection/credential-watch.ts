import { realpath } from 'node:fs/promises'
import { DirectoryWatch } from '../../directory-watch.js'
import { silent } from '../../log.js'
import { mountAbove } from '../../mountinfo.js'

/** File systems on which another machine, or a process in user space, changes files without an event from this kernel. */
const withoutEvents = /^(?:9p|afs|ceph|cifs|coda|fuse|gfs2|gpfs|lustre|nfs|ocfs2|smb|vboxsf|virtiofs)/

interface CredentialWatchOptions {
  /** The files that the server's address and the credentials come from. */
  readonly files: () => readonly string[]
  /** Compares the files with what is in force; false: they differ still. */
  readonly isCurrent: () => Promise<boolean>
  /** Milliseconds from an event to the look, and between two looks while they differ, or no event would come. */
  readonly interval: number
}

/** Looks at the credentials' files when the kernel says that they have changed, so that a client at rest does not wake up for them. */
export class CredentialWatch {
  readonly #watches = new Map<string, DirectoryWatch>()
  #timer: NodeJS.Timeout | undefined
  #looking = false
  #again = false
  #closed = false

  constructor(private readonly options: CredentialWatchOptions) {}

  /** The files may be others, or may have changed. */
  soon(): void {
    if (this.#closed) return
    this.#again = this.#looking
    if (!this.#looking) this.#timer ??= setTimeout(() => void this.#look(), this.options.interval).unref()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const watch of this.#watches.values()) watch.close()
    this.#watches.clear()
  }

  async #look(): Promise<void> {
    this.#timer = undefined
    this.#looking = true
    this.#again = false
    // First: the look sees what changes meanwhile, or an event tells.
    const hasEvents = await this.#arm()
    const isCurrent = await this.options.isCurrent()
    this.#looking = false
    if (!hasEvents || !isCurrent || this.#isAsked()) this.soon()
  }

  #isAsked(): boolean {
    return this.#again
  }

  async #arm(): Promise<boolean> {
    const files = this.options.files()
    for (const [file, watch] of this.#watches) {
      if (files.includes(file)) continue
      watch.close()
      this.#watches.delete(file)
    }
    let hasEvents = files.length > 0
    for (const file of files) {
      if (this.#closed) return false
      const watch = this.#watches.get(file) ?? new DirectoryWatch(file, () => this.soon(), silent)
      this.#watches.set(file, watch)
      hasEvents = (await watch.arm()) && (await sendsEvents(file)) && hasEvents
    }
    return hasEvents
  }
}

async function sendsEvents(file: string): Promise<boolean> {
  try {
    const mount = mountAbove(await realpath(file))
    return mount !== undefined && !withoutEvents.test(mount.type)
  } catch {
    return false
  }
}
