import { directoriesAbove } from '../../relative-path.js'
import { accessAttribute, type TreeEntry } from '../path/index.js'
import type { Attributes, FileSystem } from '../file-system.js'

interface Makers {
  readonly fs: Pick<FileSystem, 'user'>
  /** The directory that holds the target. */
  readonly parent: Pick<Attributes, 'uid' | 'mode'>
  /** Directories between it and the old content. */
  readonly between: readonly Pick<Attributes, 'mode'>[]
  readonly old: readonly TreeEntry[]
  /** What the last publication made. */
  readonly last: readonly Pick<TreeEntry, 'path' | 'uid'>[]
}

/** Decides of an old entry of this user, which `next` is to own: see trust(). */
export type KeepsFrom = (path: string, uid: number, next: number) => boolean

/**
 * Whose ACLs, user attributes and modes stay: those of entries of root, of this process's user, and of a user who is to own the entry again and
 * whom the last publication, or root, gave it. Any other user may have made the entry first, opened to themselves.
 */
export function trust({ fs, parent, between, old, last }: Makers): KeepsFrom {
  const entries = new Map(old.map((entry) => [entry.path, entry]))
  const lastOwners = new Map(last.map((entry) => [entry.path, entry.uid]))
  const keepsOut = ({ mode }: Pick<Attributes, 'mode'>): boolean => (mode & 0o022) === 0
  const isSafe = (uid: number): boolean => uid === 0 || uid === fs.user.uid
  /** Only root and this user can have made it, or somebody to whom they gave a directory of the target: chown(2) is root's. */
  const isGiven = (path: string): boolean =>
    isSafe(parent.uid) &&
    [parent, ...between].every(keepsOut) &&
    (path === '' ? [] : ['', ...directoriesAbove(path)]).every((at) => {
      const directory = entries.get(at)
      return directory !== undefined && keepsOut(directory) && directory.extended?.has(accessAttribute) !== true
    })
  return (path, uid, next) => isSafe(uid) || (uid === next && (lastOwners.get(path) === uid || isGiven(path)))
}
