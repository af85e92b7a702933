import type { Descriptor, Mount } from '../../../src/durable/file-system.js'
import { inherit } from './access-lists.js'
import type { Inode } from './inode.js'
import { deviceOf, type ModelDisk, ModelError } from './model-disk.js'

/** Which mount a descriptor is on: as of FileSystem.mount(). */
export type OpenMount = Pick<Mount, 'id' | 'root' | 'mountPoint'>

export interface Open {
  readonly inode: number
  readonly path: string
  readonly mount: OpenMount
  readonly writes: boolean
  /** Failed writes of the inode that this descriptor has reported. */
  reported: number
}

/** The descriptors of one process, and names looked up through them. */
export class OpenFiles {
  readonly #open = new Map<Descriptor, Open>()
  #next = 3

  constructor(readonly disk: ModelDisk) {}

  get size(): number {
    return this.#open.size
  }

  of(descriptor: Descriptor): Open {
    const open = this.#open.get(descriptor)
    if (!open) throw new ModelError('EBADF', 'fcntl', `descriptor ${descriptor}`)
    return open
  }

  add({ number, failures }: Inode, path: string, mount: OpenMount, writes: boolean): Descriptor {
    const descriptor = this.#next++
    this.#open.set(descriptor, { inode: number, path, mount, writes, reported: failures })
    return descriptor
  }

  /** What a name in a directory leads to is on its mount. */
  addChild(parent: Descriptor, name: string, inode: Inode, writes: boolean): Descriptor {
    return this.add(inode, this.path(parent, name), this.of(parent).mount, writes)
  }

  remove(descriptor: Descriptor): void {
    this.#open.delete(descriptor)
  }

  path(parent: Descriptor, name: string): string {
    return `${this.of(parent).path}/${name}`
  }

  error(code: string, syscall: string, parent: Descriptor, name: string): ModelError {
    return new ModelError(code, syscall, this.path(parent, name))
  }

  child(parent: Descriptor, name: string, syscall: string): Inode {
    const inode = this.disk.child(this.of(parent).inode, name)
    if (inode === undefined) throw this.error('ENOENT', syscall, parent, name)
    return inode
  }

  /** Another file system begins there, or the two are not on one. */
  refuseOtherDevice(inode: number, parent: Descriptor, name: string, syscall: string): void {
    if (deviceOf(inode) !== deviceOf(this.of(parent).inode)) throw this.error('EXDEV', syscall, parent, name)
  }

  openFile(parent: Descriptor, name: string, writes: boolean): Descriptor {
    const inode = this.child(parent, name, 'open')
    if (inode.type === 'symlink') throw this.error('ELOOP', 'open', parent, name)
    if (inode.type === 'directory' && writes) throw this.error('EISDIR', 'open', parent, name)
    return this.addChild(parent, name, inode, writes)
  }

  create(parent: Descriptor, name: string, type: Inode['type'], mode: number, data = ''): Inode {
    const { inode } = this.of(parent)
    if (this.disk.child(inode, name)) throw this.error('EEXIST', 'open', parent, name)
    const { extended } = this.disk.inode(inode).now.attributes
    const begun = type === 'symlink' ? { mode, extended: '' } : inherit(extended, type === 'directory', mode)
    return this.disk.create(inode, name, type, { ...begun, uid: 0, gid: 0, label: '' }, data)
  }

  /** A name under a mount keeps its inode. */
  refuseCovered(parent: Descriptor, name: string, syscall: string): void {
    if (this.disk.mountedAt(this.of(parent).inode, name)) throw this.error('EBUSY', syscall, parent, name)
  }

  /** What rename(2) refuses of a target that is there. */
  refuseReplacing(source: Inode, target: Inode, parent: Descriptor, name: string): void {
    const [from, to] = [source, target].map(({ type }) => type === 'directory')
    if (from && !to) throw this.error('ENOTDIR', 'renameat2', parent, name)
    if (!from && to) throw this.error('EISDIR', 'renameat2', parent, name)
    if (target.now.entries.size > 0) throw this.error('ENOTEMPTY', 'renameat2', parent, name)
  }

  /** A write that failed behind the descriptor's back, reported once. */
  unreported(open: Open): Error | undefined {
    const { failures } = this.disk.inode(open.inode)
    if (failures === open.reported) return undefined
    open.reported = failures
    return new ModelError('EIO', 'fsync', open.path)
  }
}
