import { constants } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { codeOf } from '../../errors.js'

export interface ReaderCount {
  reads: number
  /** A certificate and a key that do not belong together. */
  mixed: number
}

/**
 * Reads a certificate and its key over and over, as a careful program does: it opens the directory once for each pair, so that both
 * files are of one publication. It opens a directory again that was removed while it held it open.
 */
export class Reader {
  readonly count: ReaderCount = { reads: 0, mixed: 0 }
  #stopped = false
  readonly #done: Promise<void>

  /** `belongTogether`: whether a pair is one. */
  constructor(
    directory: string,
    private readonly belongTogether: (certificate: string, key: string) => boolean,
  ) {
    this.#done = this.#loop(directory)
  }

  async stop(): Promise<ReaderCount> {
    this.#stopped = true
    await this.#done
    return this.count
  }

  async #loop(directory: string): Promise<void> {
    while (!this.#isStopped()) {
      const pair = await readPair(directory)
      if (pair) {
        this.count.reads++
        if (!this.belongTogether(...pair)) this.count.mixed++
      }
      // The agent lives in this same process, and has to get its turn.
      await pause(1)
    }
  }

  #isStopped(): boolean {
    return this.#stopped
  }
}

async function readPair(directory: string): Promise<[string, string] | undefined> {
  const held = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const at = `/proc/self/fd/${held.fd}`
    return [await readFile(`${at}/tls.crt`, 'utf8'), await readFile(`${at}/tls.key`, 'utf8')]
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  } finally {
    await held.close()
  }
}
