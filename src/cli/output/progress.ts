import { objectName } from '../../message-text.js'
import type { Output } from './io.js'
import type { ObjectReference, Source } from '../../objects/types.js'

/** The display waits so many milliseconds: most work is done by then. */
const usualPatience = 1000

/** The line that stands on a terminal now. */
const standing = new WeakMap<Output['write'], ProgressLine>()

/** Takes the progress line away before another line is written there; it comes again at its next turn. */
export function clearProgress(stream: Output): void {
  standing.get(stream.write)?.clear()
}

/** On a terminal, one line that says how far the work is; elsewhere nothing. */
export class ProgressLine {
  #timer: NodeJS.Timeout | undefined
  #shown = false

  constructor(
    readonly stream: Output,
    private readonly patience = usualPatience,
  ) {}

  /** `describe`: the line, asked for once a second; undefined: there is nothing to say now. */
  start(describe: () => string | undefined): void {
    if (!this.stream.isTTY) return
    this.#timer = setInterval(() => {
      const line = describe()
      if (line === undefined) return
      this.clear()
      // A line that the terminal wraps stays there, once a second: an erasure takes the last row of it alone.
      this.stream.write(`${line} ...`.slice(0, (this.stream.columns ?? Infinity) - 1))
      this.#shown = true
      standing.set(this.stream.write, this)
    }, this.patience)
  }

  /** Shows the line for as long as `work` takes. */
  async during<T>(describe: () => string | undefined, work: () => Promise<T>): Promise<T> {
    this.start(describe)
    try {
      return await work()
    } finally {
      this.stop()
    }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.clear()
  }

  clear(): void {
    if (this.#shown) (this.stream.control ?? this.stream.write)('\r\u001b[K')
    this.#shown = false
  }
}

/** Which objects a source has not reported yet. */
export function waitingFor(
  references: () => readonly ObjectReference[],
  source: Pick<Source, 'latest'>,
): () => string | undefined {
  return () => {
    const open = references().filter((reference) => {
      const observation = source.latest(reference)
      return observation === undefined || observation.state === 'unknown'
    })
    const [first] = open
    if (first === undefined) return undefined
    const others = open.length > 1 ? ` and ${open.length - 1} more` : ''
    return `waiting for ${objectName(first)}${others}`
  }
}

/** How much of its content a publication has read, which reads all of it twice: to compare it, and to write it. */
export class Reading {
  #read = 0

  /** `total`: bytes of the content; undefined where the source does not tell. */
  constructor(private readonly total?: number) {}

  readonly add = (bytes: number): void => {
    this.#read += bytes
  }

  readonly describe = (): string | undefined => {
    if (this.#read === 0) return undefined
    if (this.total === undefined) return `publishing: read ${Math.floor(this.#read / 1e6)} MB`
    return `publishing: ${Math.min(100, Math.floor((50 * this.#read) / this.total))} %`
  }
}
