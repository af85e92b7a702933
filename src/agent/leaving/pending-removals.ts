import { syncParents } from '../../durable/index.js'
import { codeOf, isOutOfDescriptors, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { retryDelay } from '../../backoff.js'
import { fileSystemsNow, onFileSystem } from '../file-systems.js'

/** Milliseconds without a publication after which the agent makes the removal of old content durable, too. */
const idleTime = 1000

/**
 * The targets whose old content was unlinked since their parents were last synced. Without that sync, a power cut could bring old
 * private keys back, under a staging name, until the next publication.
 */
export class PendingRemovals {
  readonly #targets = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  /** Tries in a row that ran short of something. */
  #failures = 0

  constructor(
    private readonly log: Log,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => clearTimeout(this.#timer), { once: true })
  }

  add(target: string): void {
    this.#targets.add(target)
  }

  /** A publication starts: the disk has better things to do. */
  busy(): void {
    clearTimeout(this.#timer)
  }

  /** The publications have ended for now. */
  idle(): void {
    clearTimeout(this.#timer)
    if (this.#targets.size > 0 && !this.signal.aborted) this.#timer = setTimeout(() => void this.sync(), idleTime)
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
    const left = await Promise.all([...groups].map(([fileSystem, targets]) => this.#syncOn(fileSystem, targets)))
    for (const target of left.flat()) this.#targets.add(target)
    this.#failures = left.flat().length > 0 ? this.#failures + 1 : 0
    if (this.#failures === 0 || this.signal.aborted) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.sync(), retryDelay(this.#failures)).unref()
  }

  /** Answers the targets for another try: those without a descriptor. It never repeats a failed sync. */
  async #syncOn(fileSystem: string, targets: readonly string[]): Promise<readonly string[]> {
    try {
      await onFileSystem(fileSystem, () => syncParents(targets))
      return []
    } catch (error) {
      const message = `the removal of old content may not survive a power cut: ${messageOf(error)}`
      this.log[this.#failures === 0 ? 'warn' : 'debug']({ targets }, message)
      return isOutOfDescriptors(codeOf(error)) ? targets : []
    }
  }
}
