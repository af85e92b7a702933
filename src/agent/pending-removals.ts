import { syncParents } from '../durable/index.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { fileSystemsNow, onFileSystem } from './file-systems.js'

/** Milliseconds without a publication after which the removal of what was replaced is made durable, too. */
const idleTime = 1000

/**
 * The targets whose old content was unlinked since their parents were last synced. Without that sync, a power cut could bring old
 * private keys back, under a staging name, until the next publication.
 */
export class PendingRemovals {
  readonly #targets = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly log: Log) {}

  add(target: string): void {
    this.#targets.add(target)
  }

  /** A publication starts: the disk has better things to do. */
  busy(): void {
    clearTimeout(this.#timer)
  }

  /** The publications have ended for now. */
  idle(): void {
    if (this.#targets.size > 0) this.#timer = setTimeout(() => void this.sync(), idleTime)
  }

  /** Never rejects. */
  async sync(): Promise<void> {
    clearTimeout(this.#timer)
    if (this.#targets.size === 0) return
    const fileSystemOf = fileSystemsNow()
    const groups = new Map<string, string[]>()
    for (const target of this.#targets) {
      const fileSystem = fileSystemOf(target)
      groups.set(fileSystem, [...(groups.get(fileSystem) ?? []), target])
    }
    this.#targets.clear()
    await Promise.all([...groups].map(([fileSystem, targets]) => this.#syncOn(fileSystem, targets)))
  }

  async #syncOn(fileSystem: string, targets: readonly string[]): Promise<void> {
    await onFileSystem(fileSystem, () => syncParents(targets)).catch((error: unknown) => {
      const message = `the removal of old content may not survive a power cut: ${messageOf(error)}`
      this.log.warn({ targets }, message)
    })
  }
}
