import type { Log } from '../../log.js'
import { messageOf } from '../../errors.js'
import { describeFileSystem } from '../file-systems.js'
import { StatusInMemory } from './status-in-memory.js'

/** Milliseconds after which a write of the status counts as hanging. */
const patience = 3_000

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

/** Watches the writes of the status: while one hangs, it says so, and keeps the status in memory. */
export class HangingState {
  readonly #options: HangingStateOptions
  readonly #memory: StatusInMemory
  #problem: string | undefined
  #soon: NodeJS.Timeout | undefined
  #beat: NodeJS.Timeout | undefined

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
    if (this.#problem !== undefined) this.#soon ??= setTimeout(() => this.#keep(), together)
  }

  /** Makes a write of the status. */
  async watch<Answer>(write: () => Promise<Answer>): Promise<Answer> {
    const late = setTimeout(() => this.#hangs(), patience)
    try {
      return await write()
    } finally {
      clearTimeout(late)
      this.#answers()
    }
  }

  /** Keeps nothing any more. */
  close(): void {
    clearTimeout(this.#soon)
    clearInterval(this.#beat)
  }

  #hangs(): void {
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
    this.close()
    this.#soon = undefined
    this.#memory.drop()
    log.info({ stateDirectory }, `${stateDirectory} answers again`)
    changed()
  }
}
