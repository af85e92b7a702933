import { sleep } from '../../deadline.js'
import type { Io, Output } from './io.js'
import { isForPrograms, type OutputFormat } from './print.js'

/** On a terminal the text stays in its place, with fresh ages; elsewhere each change prints one more text, or document. */
export class Display {
  readonly #redraws: boolean
  #last: string | undefined

  constructor(
    private readonly stdout: Io['stdout'],
    private readonly format: OutputFormat,
  ) {
    this.#redraws = stdout.isTTY && !isForPrograms(format)
  }

  /** Prints the document with `print`, unless the last call printed the same. @returns whether a reader is left */
  async show(document: object, print: (to: Output) => Promise<void>): Promise<'shown' | 'unseen'> {
    const { stdout, format } = this
    const now = JSON.stringify(document)
    if (this.#redraws || now !== this.#last) {
      // In one write, so that a reader sees no half of it.
      let text = this.#redraws || this.#last === undefined ? '' : separators[format]
      const { isTTY, columns } = stdout
      await print({ isTTY, columns, write: (more) => void (text += more) })
      if (this.#redraws) stdout.control?.(clearScreen)
      stdout.write(text)
      this.#last = now
    }
    return stdout.closed ? 'unseen' : 'shown'
  }
}

/** ECMA-48: erase the screen, and go to its first place. */
const clearScreen = '\u001b[2J\u001b[H'

const separators = { text: '\n', wide: '\n', name: '\n', none: '', json: '', yaml: '---\n' }

/** Milliseconds. No event says that a process was killed, or how much time has passed. */
const heartbeat = 10_000

/** Something that changes, and says so. */
export interface Changing {
  /** From now on, each change calls the wake function. Rejects once the object cannot notice changes any more. */
  readonly arm: () => Promise<unknown>
  readonly close: () => void
}

/**
 * Shows something again at each change, until `show` answers that no reader is left. One showing at a time: a change meanwhile shows next.
 * Rejects with the error of `show`, and with the signal's reason.
 */
export async function showChanges(
  follow: (wake: () => void) => Changing,
  signal: AbortSignal,
  show: () => Promise<'shown' | 'unseen'>,
): Promise<void> {
  let waking = new AbortController()
  const wake = () => waking.abort()
  signal.addEventListener('abort', wake)
  const changing = follow(wake)
  try {
    for (;;) {
      waking = new AbortController()
      // Before the look: a change during it wakes the next wait.
      await changing.arm()
      if ((await show()) === 'unseen') return
      signal.throwIfAborted()
      await sleep(heartbeat, { signal: waking.signal }).catch(() => undefined)
      signal.throwIfAborted()
    }
  } finally {
    signal.removeEventListener('abort', wake)
    changing.close()
  }
}
