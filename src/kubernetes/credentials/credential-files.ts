import { codeOf } from '../../errors.js'
import { readRegularFile, UnfitFileError } from '../../regular-file.js'
import type { Log } from '../../log.js'
import { notText } from '../../yaml/decode.js'

/** Reads a file in its own way. @throws Error that names the path */
export type ReadFile = (path: string) => Promise<Uint8Array>

/**
 * Small files that others replace under our hands: tokens, certificates, keys, kubeconfigs. A file that was good once
 * that has become unreadable, or no longer holds what it should, is reported once and its last good content stays in force.
 * With a `readOwn` nothing stays in force: the caller asks what the files say now.
 */
export class CredentialFiles {
  readonly #good = new Map<string, string>()
  readonly #reported = new Map<string, string>()

  constructor(
    private readonly log: Log,
    private readonly readOwn?: ReadFile,
  ) {}

  /**
   * The file's text, after `check` has accepted it (`check` throws, or returns the problem). Throws an Error that
   * `describe` makes of the problem if the file was never good.
   */
  async read(
    path: string,
    check: (text: string) => string | undefined,
    describe: (problem: string) => Error,
    decode: (bytes: Uint8Array) => string | undefined = (bytes) => Buffer.from(bytes).toString(),
  ): Promise<string> {
    let problem: string | undefined
    try {
      const text = decode(await (this.readOwn ?? readCredentialFile)(path))
      problem = text === undefined ? `: ${notText}` : check(text)
      if (text !== undefined && problem === undefined) {
        if (!this.readOwn) this.#good.set(path, text)
        this.#reported.delete(path)
        return text
      }
      problem = `${path} ${problem}`
    } catch (error) {
      problem = (error as Error).message
    }
    const kept = this.#good.get(path)
    if (kept === undefined) throw describe(problem)
    this.report(path, describe(problem).message)
    return kept
  }

  /** Warns, once for each new problem of a path. */
  report(path: string, problem: string): void {
    if (this.#reported.get(path) === problem) return
    this.#reported.set(path, problem)
    this.log.warn({ reason: 'SourceUnavailable', path }, `${problem}; the previous content stays in force`)
  }
}

/** Kubeconfigs with inline data of many clusters reach some hundred KiB. */
const MAX_FILE = 8 * 1024 * 1024

async function readCredentialFile(path: string): Promise<Uint8Array> {
  return readRegularFile(path, MAX_FILE).catch((error: unknown) => {
    if (error instanceof UnfitFileError) throw error
    throw new Error(`cannot read ${path} (${codeOf(error) ?? 'unknown'})`)
  })
}
