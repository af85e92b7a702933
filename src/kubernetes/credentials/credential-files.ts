import { realpath } from 'node:fs/promises'
import { DirectoryWatch } from '../../directory-watch.js'
import { codeOf } from '../../errors.js'
import { silent, type Log } from '../../log.js'
import { mountAbove } from '../../mountinfo.js'
import { fingerprint, readRegularFile, UnfitFileError } from '../../regular-file.js'
import { notText } from '../../yaml/decode.js'

/** Reads a file in its own way. @throws Error that names the path */
export type ReadFile = (path: string) => Promise<Uint8Array>

/** File systems on which another machine, or a process in user space, changes files without an event from this kernel. */
const withoutEvents = /^(?:9p|afs|ceph|cifs|coda|fuse|gfs2|gpfs|lustre|nfs|ocfs2|smb|vboxsf|virtiofs)/

/**
 * Small files that others replace under our hands: tokens, certificates, keys, kubeconfigs. A file that was good once
 * that has become unreadable, or no longer holds what it should, is reported once and its last good content stays in force.
 * With a `readOwn` nothing stays in force: the caller asks what the files say now.
 */
export class CredentialFiles {
  /** Every file behind the credentials, with the answer of a stat just before its read. */
  readonly #fingerprints = new Map<string, string>()
  readonly #good = new Map<string, string>()
  readonly #reported = new Map<string, string>()
  readonly #watches = new Map<string, DirectoryWatch>()
  #closed = false

  constructor(
    private readonly log: Log,
    private readonly readOwn?: ReadFile,
  ) {}

  /** The credentials will be read anew, from these files first. */
  async begin(paths: readonly string[]): Promise<void> {
    this.#fingerprints.clear()
    await Promise.all(paths.map((path) => this.mark(path)))
  }

  /** Just before a file is read. */
  async mark(path: string): Promise<void> {
    this.#fingerprints.set(path, await fingerprint(path))
  }

  /** Whether a file may say something else by now: looks at them, and reads none. */
  async changed(): Promise<boolean> {
    const files = [...this.#fingerprints]
    // Side by side: each answer by itself would wake the loop up.
    const now = await Promise.all(files.map(([path]) => fingerprint(path)))
    return files.some(([, before], index) => now[index] !== before)
  }

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

  /** Calls back when one may have changed. Answers whether the kernel tells of every change. */
  async watch(changed: () => void): Promise<boolean> {
    for (const [path, watch] of this.#watches) {
      if (this.#fingerprints.has(path)) continue
      watch.close()
      this.#watches.delete(path)
    }
    let hasEvents = true
    for (const path of [...this.#fingerprints.keys()]) {
      if (this.#closed) return false
      const watch = this.#watches.get(path) ?? new DirectoryWatch(path, changed, silent)
      this.#watches.set(path, watch)
      hasEvents = (await watch.arm()) && (await sendsEvents(path)) && hasEvents
    }
    return hasEvents
  }

  close(): void {
    this.#closed = true
    for (const watch of this.#watches.values()) watch.close()
  }
}

async function sendsEvents(file: string): Promise<boolean> {
  try {
    const mount = mountAbove(await realpath(file))
    return mount !== undefined && !withoutEvents.test(mount.type)
  } catch {
    return false
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
