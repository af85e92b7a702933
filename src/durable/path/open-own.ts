import { codeOf } from '../../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import type { Scope } from './scope.js'

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

function isFileOfOurs({ user }: FileSystem, { type, uid }: Attributes): boolean {
  return type === 'file' && (uid === 0 || uid === user.uid)
}
