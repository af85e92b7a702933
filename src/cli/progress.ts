import type { Output } from './io.js'
import { describeReference, type ObjectReference, type Source } from '../objects/types.js'

/** Nothing is shown before this many milliseconds: most passes are over by then. */
const patience = 1000

/** On a terminal, one line that says what is waited for; elsewhere nothing. */
export class Progress {
  #timer: NodeJS.Timeout | undefined
  #shown = false

  constructor(readonly stream: Output) {}

  start(references: () => readonly ObjectReference[], source: Pick<Source, 'latest'>): void {
    if (!this.stream.isTTY) return
    this.#timer = setInterval(() => {
      const open = references().filter((reference) => {
        const observation = source.latest(reference)
        return observation === undefined || observation.state === 'unknown'
      })
      const [first] = open
      if (first === undefined) return
      const others = open.length > 1 ? ` and ${open.length - 1} more` : ''
      this.#clear()
      this.stream.write(`waiting for ${describeReference(first)}${others} …`)
      this.#shown = true
    }, patience)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#clear()
  }

  #clear(): void {
    if (this.#shown) this.stream.write('\r\u001b[K')
    this.#shown = false
  }
}
