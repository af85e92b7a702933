import type { Descriptor, FileSystem, Attributes } from '../file-system.js'
import { codeOf } from '../../errors.js'

/** The descriptors that one operation holds; its end closes them all, after a failure, too. */
export class Scope {
  readonly #open = new Set<Descriptor>()
  readonly #ends: (() => void)[] = []

  constructor(readonly fs: FileSystem) {}

  async keep(opening: Promise<Descriptor>): Promise<Descriptor> {
    const descriptor = await opening
    this.#open.add(descriptor)
    return descriptor
  }

  /** Calls `end` once all is closed. */
  atEnd(end: () => void): void {
    this.#ends.push(end)
  }

  holds(descriptor: Descriptor): boolean {
    return this.#open.has(descriptor)
  }

  async close(descriptor: Descriptor): Promise<void> {
    if (this.#open.delete(descriptor)) await this.fs.close(descriptor)
  }

  async closeAll(): Promise<void> {
    const open = [...this.#open]
    this.#open.clear()
    // A close that fails has still closed (close(2)); fsync has reported the failed writes before.
    await Promise.allSettled(open.map((descriptor) => this.fs.close(descriptor)))
    for (const end of this.#ends.splice(0)) end()
  }
}

/** Runs `work`, and closes all that its scope holds. */
export async function inScope<T>(fs: FileSystem, work: (scope: Scope) => Promise<T>): Promise<T> {
  const scope = new Scope(fs)
  try {
    return await work(scope)
  } finally {
    await scope.closeAll()
  }
}

/** Runs `work` with what this call opens, and closes that. */
export async function withOpen<T>(
  fs: FileSystem,
  opening: Promise<Descriptor>,
  work: (opened: Descriptor) => Promise<T>,
): Promise<T> {
  return inScope(fs, async (scope) => work(await scope.keep(opening)))
}

/** The same; undefined where there is nothing to open. */
export async function ifThere<T>(
  fs: FileSystem,
  opening: Promise<Descriptor>,
  work: (opened: Descriptor) => Promise<T>,
): Promise<T | undefined> {
  return inScope(fs, async (scope) => {
    const opened = await scope.keep(opening).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error
      return undefined
    })
    return opened === undefined ? undefined : work(opened)
  })
}

export interface OpenedOwn {
  /** undefined: what has the name is no regular file of root's or of this user's. */
  readonly file: Descriptor | undefined
  /** Of the file, or of what has its name. */
  readonly attributes: Attributes
}

/** Opens in a row between which another user takes away what had the name. */
const mostTries = 4

/** Codes of an open that failed because of what another user put under the name, and not for the disk's sake. */
const ofAName: ReadonlySet<string> = new Set(['ENXIO', 'ELOOP', 'EAGAIN', 'EACCES', 'EPERM', 'EISDIR'])

/**
 * Opens a file of a name that other users may make as well, as in a sticky directory. The open fails at a socket (ENXIO), a link (ELOOP), a
 * file with a lease (EAGAIN), and at what else may come: that is an error only where the file is ours.
 * @throws the errno of the call; ENOENT where nothing has the name
 */
export async function openOwn(
  scope: Scope,
  call: 'openFile' | 'openLock',
  parent: Descriptor,
  name: string,
): Promise<OpenedOwn> {
  const { fs } = scope
  for (let tries = 1; ; tries++) {
    const opened = await scope.keep(fs[call](parent, name)).catch((error: unknown) => ({ error }))
    if (typeof opened === 'number') {
      const attributes = await fs.attributes(opened)
      return { file: isFileOfOurs(fs, attributes) ? opened : undefined, attributes }
    }
    if (codeOf(opened.error) === 'ENOENT') throw opened.error
    const attributes = await fs.look(parent, name)
    if (attributes && !isFileOfOurs(fs, attributes)) return { file: undefined, attributes }
    // Another user may have taken the file away meanwhile: the next open answers.
    if (attributes || tries === mostTries || !ofAName.has(codeOf(opened.error) ?? '')) throw opened.error
  }
}

function isFileOfOurs(fs: FileSystem, { type, uid }: Attributes): boolean {
  return type === 'file' && (uid === 0 || uid === fs.user.uid)
}
