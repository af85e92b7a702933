import { writeSync } from 'node:fs'

/*
 * Standard output. Everything is written before the call returns, so that the process may end right after it. A reader
 * that has gone away (`| head`) is no fault.
 */

/** One JSON document. */
export function printJson(document: unknown): void {
  print(`${JSON.stringify(document, undefined, 2)}\n`)
}

const pause = new Int32Array(new SharedArrayBuffer(4))

/** Text as it is. Throws where it cannot be written, but for EPIPE. */
export function print(text: string): void {
  let rest: Uint8Array = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code === 'EPIPE') return
      // A pipe that somebody made non-blocking is full: the reader decides how long this takes.
      if (code !== 'EAGAIN') {
        throw new Error(
          `the work is done, but standard output could not be written: ${String(code)}; look with status or verify`,
          { cause: error },
        )
      }
      Atomics.wait(pause, 0, 0, 5)
    }
  }
}
