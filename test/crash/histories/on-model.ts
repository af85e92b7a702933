/** What other programs do, on the model disk. */
import { posix } from 'node:path'
import {
  access,
  byDefault,
  changeExtended,
  changeMode,
  decoded,
  inherit,
  listed,
  listOf,
} from '../model/access-lists.js'
import type { Attributes, Inode } from '../model/inode.js'
import { deviceOf, type ModelDisk, ModelError, rootInode } from '../model/model-disk.js'
import { otherFileSystem } from './places.js'

interface Name {
  readonly parent: Inode
  readonly name: string
  readonly found: Inode | undefined
}

/** Finds a name; links above it are followed. Throws where its parent is not there. */
export function named(disk: ModelDisk, path: string, depth = 0): Name {
  if (depth > 10) throw new ModelError('ELOOP', 'open', path)
  const parts = path.split('/')
  const name = parts.pop() ?? ''
  let parent = disk.inode(rootInode)
  let at = ''
  for (const part of parts) {
    const next = disk.child(parent.number, part)
    if (next?.type === 'symlink') {
      const rest = [...parts.slice(parts.indexOf(part) + 1), name].join('/')
      return named(disk, posix.join(at, next.now.data, rest), depth + 1)
    }
    if (next?.type !== 'directory') throw new ModelError(next ? 'ENOTDIR' : 'ENOENT', 'open', path)
    parent = next
    at = posix.join(at, part)
  }
  return { parent, name, found: disk.child(parent.number, name) }
}

function there(disk: ModelDisk, path: string): Name & { found: Inode } {
  const { found, ...rest } = named(disk, path)
  if (found === undefined) throw new ModelError('ENOENT', 'open', path)
  return { ...rest, found }
}

export function rename(disk: ModelDisk, from: string, to: string): void {
  const source = there(disk, from)
  const goal = named(disk, to)
  // Mounts stay: the kernel compares the directories, and then the mounts in them.
  if (deviceOf(source.parent.number) !== deviceOf(goal.parent.number)) throw new ModelError('EXDEV', 'rename', to)
  if (deviceOf(source.found.number) !== deviceOf(source.parent.number)) throw new ModelError('EBUSY', 'rename', from)
  if (goal.found?.number === source.found.number) return
  if (contains(disk, source.found, goal.parent.number)) throw new ModelError('EINVAL', 'rename', to)
  if (goal.found) {
    const [isDirectory, isOverDirectory] = [source.found.type === 'directory', goal.found.type === 'directory']
    if (isDirectory !== isOverDirectory) throw new ModelError(isDirectory ? 'ENOTDIR' : 'EISDIR', 'rename', to)
    if (deviceOf(goal.found.number) !== deviceOf(goal.parent.number)) throw new ModelError('EBUSY', 'rename', to)
    if (goal.found.now.entries.size > 0) throw new ModelError('ENOTEMPTY', 'rename', to)
  }
  if (source.parent.number === goal.parent.number) {
    disk.link(
      goal.parent.number,
      [
        [goal.name, source.found.number],
        [source.name, undefined],
      ],
      `rename ${to}`,
    )
    return
  }
  disk.link(goal.parent.number, [[goal.name, source.found.number]], `rename ${to}`)
  disk.link(source.parent.number, [[source.name, undefined]], `rename ${from}`)
}

/** Also through mounts below: `cp` knows the directory by its device and inode. */
function contains(disk: ModelDisk, above: Inode, number: number): boolean {
  if (above.number === number) return true
  return [...above.now.entries.keys()].some((name) => {
    const child = disk.child(above.number, name)
    return child !== undefined && contains(disk, child, number)
  })
}

export function link(disk: ModelDisk, from: string, to: string): void {
  const source = there(disk, from)
  const goal = named(disk, to)
  if (source.found.type === 'directory') throw new ModelError('EPERM', 'link', from)
  if (goal.found) throw new ModelError('EEXIST', 'link', to)
  if (deviceOf(source.found.number) !== deviceOf(goal.parent.number)) throw new ModelError('EXDEV', 'link', to)
  disk.link(goal.parent.number, [[goal.name, source.found.number]], `link ${to}`)
}

/** `to` leads to `from`. */
export function symlink(disk: ModelDisk, from: string, to: string): void {
  const goal = named(disk, to)
  if (goal.found) throw new ModelError('EEXIST', 'symlink', to)
  disk.create(
    goal.parent.number,
    goal.name,
    'symlink',
    { mode: 0o777, uid: 0, gid: 0, label: '', extended: '' },
    linkText(from, to),
  )
}

export function linkText(from: string, to: string): string {
  return posix.relative(posix.dirname(to), from) || '.'
}

/** As `cp -aT --remove-destination`: into a directory that is there, over files that are there. */
export function copy(disk: ModelDisk, from: string, to: string): void {
  const source = there(disk, from)
  const goal = named(disk, to)
  if (contains(disk, source.found, goal.parent.number)) throw new ModelError('EINVAL', 'cp', to)
  copyInode(disk, source.found, goal.parent.number, goal.name)
}

function copyInode(disk: ModelDisk, source: Inode, parent: number, name: string): void {
  const { type, now } = source
  let made = disk.child(parent, name)
  if (made && (made.type === 'directory') !== (type === 'directory')) throw new ModelError('EISDIR', 'cp', name)
  if (made && type !== 'directory') {
    disk.link(parent, [[name, undefined]], `unlink ${name}`)
    made = undefined
  }
  made ??= disk.create(parent, name, type, now.attributes, now.data)
  for (const child of now.entries.keys()) {
    const found = disk.child(source.number, child)
    if (found) copyInode(disk, found, made.number, child)
  }
}

export function remove(disk: ModelDisk, path: string): void {
  const { parent, name, found } = there(disk, path)
  if (deviceOf(found.number) !== deviceOf(parent.number)) throw new ModelError('EBUSY', 'rm', path)
  for (const child of found.now.entries.keys()) remove(disk, `${path}/${child}`)
  disk.link(parent.number, [[name, undefined]], `rm ${path}`)
}

export function mkdir(disk: ModelDisk, path: string): void {
  const { parent, name, found } = named(disk, path)
  if (found) throw new ModelError('EEXIST', 'mkdir', path)
  disk.create(parent.number, name, 'directory', attributesIn(parent, true, 0o755))
}

/** Creates a file, or appends to it. */
export function write(disk: ModelDisk, path: string, text: string): void {
  const { parent, name, found } = named(disk, path)
  if (found && found.type !== 'file') throw new ModelError('EISDIR', 'open', path)
  if (found) disk.append(found.number, text)
  else disk.create(parent.number, name, 'file', attributesIn(parent, false, 0o644), text)
}

function attributesIn({ now }: Inode, isDirectory: boolean, mode: number): Attributes {
  return { ...inherit(now.attributes.extended, isDirectory, mode), uid: 0, gid: 0, label: '' }
}

export function chmod(disk: ModelDisk, path: string, mode: number): void {
  setMetadata(disk, path, (before) => changeMode(before, mode))
}

export function chown(disk: ModelDisk, path: string): void {
  setMetadata(disk, path, () => ({ uid: 7, gid: 8 }))
}

/** As `setfacl -m u:1000:r`, or with `-d`: the mask grants what the group and this user are granted. */
export function setAcl(disk: ModelDisk, path: string, inherited: boolean): void {
  setMetadata(disk, path, (before) => {
    const { mode } = listed(decoded(before.extended).get(access), before.mode)
    const [owner = 0, group = 0, other = 0] = [6, 3, 0].map((shift) => (mode >> shift) & 7)
    return changeExtended(before, inherited ? byDefault : access, listOf(owner, 4, group, group | 4, other))
  })
}

function setMetadata(disk: ModelDisk, path: string, change: (before: Attributes) => Partial<Attributes>): void {
  const { found } = there(disk, path)
  if (found.type === 'symlink') throw new ModelError('EOPNOTSUPP', 'chmod', path)
  disk.setMetadata(found.number, change(found.now.attributes), `chmod ${path}`)
}

/** A bind mount. The model has those of the second file system over names of the first. */
export function mount(disk: ModelDisk, from: string, to: string): void {
  const source = there(disk, from)
  const goal = there(disk, to)
  const isModelled = deviceOf(source.found.number) === 1 && deviceOf(goal.found.number) === 0
  if (!isModelled || goal.found.type !== 'directory') throw new ModelError('EINVAL', 'mount', to)
  disk.mountOver(goal.parent.number, goal.name, source.found.number, posix.join('/', pathOn(disk, source.found)))
}

/** Where a directory of the second file system is in it. */
function pathOn(disk: ModelDisk, { number }: Inode): string {
  const walk = (at: Inode, path: string): string | undefined => {
    if (at.number === number) return path
    for (const [name, child] of at.now.entries) {
      const found = walk(disk.inode(child), `${path}/${name}`)
      if (found !== undefined) return found
    }
    return undefined
  }
  return walk(named(disk, otherFileSystem).found ?? disk.inode(rootInode), '') ?? ''
}

export function unmount(disk: ModelDisk, path: string): void {
  const { parent, name } = named(disk, path)
  if (!disk.unmount(parent.number, name)) throw new ModelError('EINVAL', 'umount', path)
}
