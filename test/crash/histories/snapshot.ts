/** All that can be seen of a disk, by path: read from the model itself, or from a mounted file system, and not through the code under test. */
import { join, posix } from 'node:path'
import { entriesAt, type Entry } from '../judge/directory.js'
import { access, byDefault, decoded, listed } from '../model/access-lists.js'
import type { Inode } from '../model/inode.js'
import { type ModelDisk, rootInode } from '../model/model-disk.js'
import { extendedAttribute } from './libc.js'

/** The mode is what the access list says of owner, owning group and others, where there is one. */
export interface Seen extends Entry {
  /** The users that the access list adds, and the list that new entries inherit; '' where there is none. */
  readonly lists: string
  /** Device and inode: equal for two names of one. */
  readonly identity: string
}

/** By path relative to the root of the history, which is ''. */
export type Snapshot = ReadonlyMap<string, Seen>

export function snapshotOfModel(disk: ModelDisk): Snapshot {
  const seen = new Map<string, Seen>()
  const walk = ({ number, type, now }: Inode, path: string): void => {
    const { uid, gid } = now.attributes
    const extended = decoded(now.attributes.extended)
    const permissions = permissionsOf(now.attributes.mode, (name) => extended.get(name))
    seen.set(path, { type, ...permissions, uid, gid, data: now.data, identity: `${number}` })
    for (const name of now.entries.keys()) {
      const child = disk.child(number, name)
      if (child) walk(child, under(path, name))
    }
  }
  walk(disk.inode(rootInode), '')
  return seen
}

export function snapshotOfDirectory(root: string): Snapshot {
  const seen = [...entriesAt(root)].map(([path, entry]) => {
    const permissions = permissionsOf(entry.mode, (name) => extendedAttribute(join(root, path), name))
    return [path, { ...entry, ...permissions }] as const
  })
  return new Map(seen)
}

function permissionsOf(
  statMode: number,
  attribute: (name: string) => string | undefined,
): Pick<Seen, 'mode' | 'lists'> {
  const { mode, others } = listed(attribute(access), statMode)
  const inherited = attribute(byDefault)
  return {
    mode,
    lists: inherited === undefined ? others : `${others} default ${Buffer.from(inherited, 'latin1').toString('hex')}`,
  }
}

export function under(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`
}

export function parentOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : ''
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Whether one is the other, or above it. */
export function isAtOrAbove(above: string, path: string): boolean {
  return above === '' || path === above || path.startsWith(`${above}/`)
}

/** The path with the symbolic links above its last part followed; undefined where they lead nowhere. */
export function resolved(snapshot: Snapshot, path: string): string | undefined {
  const parent = directoryAt(snapshot, parentOf(path))
  return parent === undefined ? undefined : under(parent, nameOf(path))
}

/** The same, with missing directories as a call would make them. */
export function resolvedOrMade(snapshot: Snapshot, path: string): string {
  return path === '' ? '' : under(directoryMade(snapshot, parentOf(path)), nameOf(path))
}

/** A link may lead to a missing entry. */
function directoryMade(snapshot: Snapshot, path: string, depth = 0): string {
  if (path === '') return ''
  const parent = directoryMade(snapshot, parentOf(path), depth)
  const at = under(parent, nameOf(path))
  const found = snapshot.get(at)
  if (found?.type !== 'symlink' || depth > 10) return at
  return directoryMade(snapshot, linkTarget(parent, found.data), depth + 1)
}

/** The directory that a path leads to, all links followed. */
function directoryAt(snapshot: Snapshot, path: string, depth = 0): string | undefined {
  if (path === '') return ''
  const parent = depth > 10 ? undefined : directoryAt(snapshot, parentOf(path), depth + 1)
  if (parent === undefined) return undefined
  const at = under(parent, nameOf(path))
  const found = snapshot.get(at)
  if (found?.type === 'symlink') return directoryAt(snapshot, linkTarget(parent, found.data), depth + 1)
  return found?.type === 'directory' ? at : undefined
}

/** Above the root is the root, as in the kernel. */
function linkTarget(directory: string, text: string): string {
  return posix.join('/', directory, text).replace(/^\/|\/$/g, '')
}

/** The entries at a path and below it, by relative path; empty where there is none. */
export function below(snapshot: Snapshot, path: string): Map<string, Seen> {
  const found = new Map<string, Seen>()
  for (const [other, seen] of snapshot) {
    if (other === path) found.set('', seen)
    else if (other.startsWith(`${path}/`)) found.set(other.slice(path.length + 1), seen)
  }
  return found
}
