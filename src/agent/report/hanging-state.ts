import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../log.js'
import { messageOf } from '../../errors.js'
import { describeFileSystem } from '../file-systems.js'
import { hasBlockedThread } from '../process-identity.js'
import { StatusInMemory } from './status-in-memory.js'

/** Milliseconds after which a write of the status counts as hanging. */
const patience = 3_000

/**
 * Milliseconds between looks at a disk to which the agent writes nothing. At rest they are as rare as lets a frozen disk be reported within five
 * seconds: each wakes a thread, and the loop twice.
 */
const lookIntervals = { soon: 1_000, atRest: 4_400 }

/** Milliseconds without a change after which the agent is at rest. */
const restAfter = 15_000

/** Milliseconds after which a look counts as hanging, which waits for no flush: where a thread waits in the kernel, and in any case. */
const lookPatience = { blocked: 500, any: 2_000 }

/** Milliseconds after a change: one write serves the changes of a moment. */
const together = 150

/** Milliseconds: a status that is older looks as if its agent hung. */
const heartbeat = 60_000

interface HangingStateOptions {
  readonly stateDirectory: string
  readonly log: Log
  /** The status as it is now. */
  readonly text: () => string
  /** `problem` differs from before. */
  readonly changed: () => void
}

/**
 * Asks the file system of a directory for leave to write, and writes nothing: unlink(2) takes it before it looks for the name
 * (mnt_want_write in the kernel's fs/namei.c). On a frozen file system that waits, as a write would; a read would not.
 * @internal
 */
export async function askToWrite(directory: string): Promise<void> {
  // An error is an answer of the file system, too.
  await unlink(join(directory, '.holdfast-may-write')).catch(() => undefined)
}

/**
 * Watches the writes of the status, and looks at the disk between them: while it hangs, says so, and keeps the status in memory. One thread at a
 * time waits for the disk.
 */
export class HangingState {
  readonly #options: HangingStateOptions
  readonly #memory: StatusInMemory
  #problem: string | undefined
  #soon: NodeJS.Timeout | undefined
  #beat: NodeJS.Timeout | undefined
  #changedAt = -Infinity
  #nextLook: NodeJS.Timeout | undefined
  #look: Promise<void> | undefined
  #isWriting = false
  #closed = false

  constructor(options: HangingStateOptions) {
    this.#options = options
    this.#memory = new StatusInMemory(options.stateDirectory)
  }

  /** What does not answer; undefined: the disk does. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Something in the status has changed. */
  changed(): void {
    const wasAtRest = this.#isAtRest
    this.#changedAt = performance.now()
    if (this.#problem !== undefined) this.#soon ??= setTimeout(() => this.#keep(), together)
    else if (wasAtRest) this.#lookLater()
  }

  /** Makes a write of the status. */
  async watch<Answer>(write: () => Promise<Answer>): Promise<Answer> {
    clearTimeout(this.#nextLook)
    this.#isWriting = true
    try {
      await this.#look
      return await this.#timed(write, patience)
    } finally {
      this.#isWriting = false
      this.#lookLater()
    }
  }

  /** Looks and keeps nothing any more. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#nextLook)
    this.#forget()
  }

  get #isAtRest(): boolean {
    return performance.now() - this.#changedAt >= restAfter
  }

  /** After the write or the look that is under way. */
  #lookLater(): void {
    clearTimeout(this.#nextLook)
    if (this.#closed || this.#isWriting || this.#look !== undefined) return
    const interval = this.#isAtRest ? lookIntervals.atRest : lookIntervals.soon
    this.#nextLook = setTimeout(() => {
      this.#look = this.#timed(() => this.#ask(), lookPatience.any).finally(() => {
        this.#look = undefined
        this.#lookLater()
      })
    }, interval).unref()
  }

  /** A thread that starves on a busy machine is no disk that hangs; a thread that waits in the kernel for so long is. */
  async #ask(): Promise<void> {
    const blocked = setTimeout(() => {
      void hasBlockedThread().then((isBlocked) => {
        if (isBlocked && this.#look !== undefined) this.#hangs()
      })
    }, lookPatience.blocked)
    try {
      await askToWrite(this.#options.stateDirectory)
    } finally {
      clearTimeout(blocked)
    }
  }

  async #timed<Answer>(work: () => Promise<Answer>, limit: number): Promise<Answer> {
    let isOver = false
    // A loop that stood still runs its timers before it takes the answer that has come meanwhile.
    const late = setTimeout(() => {
      setImmediate(() => {
        if (!isOver) this.#hangs()
      })
    }, limit)
    try {
      return await work()
    } finally {
      isOver = true
      clearTimeout(late)
      this.#answers()
    }
  }

  #forget(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    clearInterval(this.#beat)
  }

  #hangs(): void {
    if (this.#problem !== undefined) return
    const { stateDirectory, log, changed } = this.#options
    this.#problem = `${stateDirectory} does not answer: its disk, ${describeFileSystem(stateDirectory)}, hangs`
    const meanwhile = 'the agent goes on, and keeps in memory what "holdfast status" shows; check the kernel log'
    this.#beat = setInterval(() => this.#keep(), heartbeat).unref()
    // First: the line sends its reader to the status.
    this.#keep()
    log.warn({ reason: 'Stalled', stateDirectory }, `${this.#problem}; ${meanwhile}`)
    changed()
  }

  #keep(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    try {
      this.#memory.write(this.#options.text())
    } catch (error) {
      this.#options.log.debug({}, `could not keep the status in memory: ${messageOf(error)}`)
    }
  }

  #answers(): void {
    if (this.#problem === undefined) return
    const { stateDirectory, log, changed } = this.#options
    this.#problem = undefined
    this.#forget()
    this.#memory.drop()
    log.info({ stateDirectory }, `${stateDirectory} answers again`)
    changed()
  }
}
