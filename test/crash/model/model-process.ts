import { hash } from 'node:crypto'
import type {
  Attributes,
  Descriptor,
  Entry,
  FileSystem,
  Mount,
  Outcomes,
  RenameMode,
} from '../../../src/durable/file-system.js'
import type { Inode } from './inode.js'
import { type ModelDisk, ModelError, rootInode } from './model-disk.js'
import { type Open, OpenFiles } from './open-files.js'

/** Called before each call of the FileSystem interface; what it throws is the call's failure, before any effect. */
export type Before = (call: string, name: string) => void | Promise<void>

/**
 * What is to fail inside a sync or a write-out: `drop`: the pages are marked clean; `keep`: they stay dirty; `abort`: the
 * journal is aborted.
 */
export type SyncFault = (
  call: 'sync' | 'startWriteOut',
  path: string,
  isDirectory: boolean,
) => 'drop' | 'keep' | 'abort' | undefined

/** Another one for another state: what a time of change is on a disk. */
function stampOf(state: string): bigint {
  return BigInt(`0x${hash('sha1', state)}`)
}

let processes = 0

/** A process on the model disk. It runs as root. */
export class ModelProcess implements FileSystem {
  readonly stagedFiles = 256
  /** None stays open that is not used: so each is opened anew. */
  readonly openDirectories = 1
  readonly user = { uid: 0, gid: 0 }
  before: Before | undefined
  syncFault: SyncFault | undefined
  readonly #open: OpenFiles
  /** Each process sees a device number of its own, since the core keeps a queue for each target in its process. */
  readonly #device = ++processes

  constructor(readonly disk: ModelDisk) {
    this.#open = new OpenFiles(disk)
  }

  /** Descriptors that are open. */
  get descriptors(): number {
    return this.#open.size
  }

  async openPath(path: string): Promise<Descriptor> {
    await this.before?.('openPath', path)
    let inode = this.disk.inode(rootInode)
    for (const part of path.split('/').filter((text) => text !== '')) {
      const next = this.disk.child(inode.number, part)
      if (next === undefined) throw new ModelError('ENOENT', 'openat2', path)
      if (next.type !== 'directory')
        throw new ModelError(next.type === 'symlink' ? 'ELOOP' : 'ENOTDIR', 'openat2', path)
      inode = next
    }
    return this.#open.add(inode, path, false)
  }

  async openDirectory(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openDirectory', name)
    const inode = this.#open.child(parent, name, 'open')
    if (inode.type !== 'directory') throw this.#open.error('ENOTDIR', 'open', parent, name)
    return this.#open.add(inode, this.#open.path(parent, name), false)
  }

  async openFile(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openFile', name)
    return this.#open.openFile(parent, name, false)
  }

  async openAppend(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openAppend', name)
    this.disk.writable('open', name)
    return this.#open.openFile(parent, name, true)
  }

  async createFile(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('createFile', name)
    return this.#open.add(this.#open.create(parent, name, 'file', 0o600), this.#open.path(parent, name), true)
  }

  async openLock(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openLock', name)
    const { inode } = this.#open.of(parent)
    const found = this.disk.child(inode, name) ?? this.#open.create(parent, name, 'file', 0o600)
    return this.#open.add(found, this.#open.path(parent, name), true)
  }

  async createDirectory(parent: Descriptor, name: string, mode = 0o700): Promise<void> {
    await this.before?.('createDirectory', name)
    this.#open.create(parent, name, 'directory', mode)
  }

  async createLink(parent: Descriptor, name: string, text: string): Promise<void> {
    await this.before?.('createLink', name)
    this.#open.create(parent, name, 'symlink', 0o777, text)
  }

  async readLink(parent: Descriptor, name: string): Promise<string> {
    await this.before?.('readLink', name)
    const inode = this.#open.child(parent, name, 'readlink')
    if (inode.type !== 'symlink') throw this.#open.error('EINVAL', 'readlink', parent, name)
    return inode.now.data
  }

  async readLinkPath(path: string): Promise<string> {
    const { parent, name } = await this.#lastOf(path)
    return this.readLink(parent, name).finally(() => this.close(parent))
  }

  async list(directory: Descriptor): Promise<string[]> {
    await this.before?.('list', '')
    return [...this.disk.inode(this.#open.of(directory).inode).now.entries.keys()]
  }

  async entries(directory: Descriptor): Promise<Entry[]> {
    await this.before?.('entries', '')
    const found = this.disk.inode(this.#open.of(directory).inode).now.entries
    return [...found].map(([name, number]) => ({ name, type: this.disk.inode(number).type }))
  }

  async look(parent: Descriptor, name: string): Promise<Attributes | undefined> {
    await this.before?.('look', name)
    const found = this.disk.child(this.#open.of(parent).inode, name)
    return found && this.#attributes(found)
  }

  async lookPath(path: string): Promise<Attributes | undefined> {
    if (path === '/') return this.#attributes(this.disk.inode(rootInode))
    const { parent, name } = await this.#lastOf(path)
    return this.look(parent, name).finally(() => this.close(parent))
  }

  async attributes(descriptor: Descriptor): Promise<Attributes> {
    await this.before?.('attributes', '')
    return this.#attributes(this.disk.inode(this.#open.of(descriptor).inode))
  }

  async write(file: Descriptor, bytes: Uint8Array): Promise<void> {
    const open = this.#open.of(file)
    await this.before?.('write', open.path)
    this.disk.writable('write', open.path)
    if (!open.writes) throw new ModelError('EBADF', 'write', open.path)
    this.disk.append(open.inode, Buffer.from(bytes).toString('latin1'))
  }

  async *read(file: Descriptor): AsyncIterable<Uint8Array> {
    await this.before?.('read', this.#open.of(file).path)
    yield Buffer.from(this.disk.inode(this.#open.of(file).inode).now.data, 'latin1')
  }

  async setMode(descriptor: Descriptor, mode: number): Promise<void> {
    await this.#setMetadata(descriptor, 'setMode', 'fchmod', { mode })
  }

  async setOwner(descriptor: Descriptor, uid: number, gid: number): Promise<void> {
    await this.#setMetadata(descriptor, 'setOwner', 'fchown', { uid, gid })
  }

  async setLinkOwner(parent: Descriptor, name: string, uid: number, gid: number): Promise<void> {
    await this.before?.('setLinkOwner', name)
    this.disk.writable('lchown', name)
    this.disk.setMetadata(this.#open.child(parent, name, 'lchown').number, { uid, gid }, `chown ${name}`)
  }

  async label(descriptor: Descriptor): Promise<Uint8Array | undefined> {
    await this.before?.('label', '')
    const { label } = this.disk.inode(this.#open.of(descriptor).inode).now.attributes
    return label === '' ? undefined : Buffer.from(label, 'latin1')
  }

  async setLabel(descriptor: Descriptor, label: Uint8Array): Promise<void> {
    const text = Buffer.from(label).toString('latin1')
    await this.#setMetadata(descriptor, 'setLabel', 'fsetxattr', { label: text })
  }

  async startWriteOut(files: readonly Descriptor[]): Promise<Outcomes> {
    await this.before?.('startWriteOut', '')
    // It promises nothing: whatever it writes may have got to the disk before, too.
    return files.map((file) => this.#fault('startWriteOut', 'sync_file_range', this.#open.of(file)))
  }

  async sync(descriptors: readonly Descriptor[]): Promise<Outcomes> {
    await this.before?.('sync', descriptors.map((descriptor) => this.#open.of(descriptor).path).join(' '))
    return descriptors.map((descriptor) => {
      const open = this.#open.of(descriptor)
      const failure = this.#fault('sync', 'fsync', open) ?? this.#open.unreported(open)
      if (failure === undefined) this.disk.sync(open.inode)
      return failure
    })
  }

  async rename(
    fromParent: Descriptor,
    from: string,
    toParent: Descriptor,
    to: string,
    mode: RenameMode,
  ): Promise<void> {
    await this.before?.('rename', to)
    this.disk.writable('renameat2', to)
    const source = this.#open.child(fromParent, from, 'renameat2')
    const target = this.disk.child(this.#open.of(toParent).inode, to)
    if (mode === 'exchange' && target === undefined) throw this.#open.error('ENOENT', 'renameat2', toParent, to)
    if (mode === 'noreplace' && target) throw this.#open.error('EEXIST', 'renameat2', toParent, to)
    if (mode === 'replace' && target) this.#open.refuseReplacing(source, target, toParent, to)
    const left = mode === 'exchange' ? target?.number : undefined
    const [origin, goal] = [this.#open.of(fromParent).inode, this.#open.of(toParent).inode]
    // One step inside one directory; across two, a power cut can leave either half.
    if (origin === goal) {
      const names = [[from, left] as const, [to, source.number] as const]
      this.disk.link(origin, names, `${mode} ${to}`)
      return
    }
    this.disk.link(goal, [[to, source.number]], `${mode} ${to}`)
    this.disk.link(origin, [[from, left]], `${mode} ${from}`)
  }

  async removeFile(parent: Descriptor, name: string): Promise<void> {
    await this.before?.('removeFile', name)
    if (this.#open.child(parent, name, 'unlink').type === 'directory')
      throw this.#open.error('EISDIR', 'unlink', parent, name)
    this.disk.writable('unlink', name)
    this.disk.link(this.#open.of(parent).inode, [[name, undefined]], `unlink ${name}`)
  }

  async removeDirectory(parent: Descriptor, name: string): Promise<void> {
    await this.before?.('removeDirectory', name)
    const inode = this.#open.child(parent, name, 'rmdir')
    if (inode.type !== 'directory') throw this.#open.error('ENOTDIR', 'rmdir', parent, name)
    if (inode.now.entries.size > 0) throw this.#open.error('ENOTEMPTY', 'rmdir', parent, name)
    this.disk.writable('rmdir', name)
    this.disk.link(this.#open.of(parent).inode, [[name, undefined]], `rmdir ${name}`)
  }

  tryLock(lock: Descriptor): boolean {
    return this.disk.tryLock(this.#open.of(lock).inode, this)
  }

  /** The model has one mount. */
  mountsBelow(directory: Descriptor): Promise<string[]> {
    this.#open.of(directory)
    return Promise.resolve([])
  }

  async mount(descriptor: Descriptor): Promise<Mount> {
    this.#open.of(descriptor)
    await this.before?.('mount', '')
    return { id: 1, type: 'model', root: '/', mountPoint: '/', proven: true }
  }

  async close(descriptor: Descriptor): Promise<void> {
    const open = this.#open.of(descriptor)
    this.#open.remove(descriptor)
    this.disk.unlock(open.inode, this)
    return Promise.resolve()
  }

  async bootId(): Promise<string> {
    return Promise.resolve(`boot-${this.disk.boot}`)
  }

  random(): string {
    return this.disk.random()
  }

  now(): number {
    return Date.UTC(2026, 0, 1)
  }

  #attributes({ number, type, now }: Inode): Attributes {
    const { mode, uid, gid } = now.attributes
    const { disk } = this
    return {
      type,
      device: this.#device,
      inode: BigInt(number),
      birth: 0n,
      mode,
      uid,
      gid,
      size: now.data.length,
      get changed() {
        return stampOf(JSON.stringify([now.attributes, now.data]))
      },
      // Counted only where it is asked for.
      get links() {
        return disk.namesOf(number)
      },
    }
  }

  async #setMetadata(
    descriptor: Descriptor,
    call: string,
    syscall: string,
    change: Parameters<ModelDisk['setMetadata']>[1],
  ): Promise<void> {
    const { inode, path } = this.#open.of(descriptor)
    await this.before?.(call, path)
    this.disk.writable(syscall, path)
    this.disk.setMetadata(inode, change, syscall)
  }

  async #lastOf(path: string): Promise<{ parent: Descriptor; name: string }> {
    const cut = path.lastIndexOf('/')
    return { parent: await this.openPath(path.slice(0, cut) || '/'), name: path.slice(cut + 1) }
  }

  #fault(call: 'sync' | 'startWriteOut', syscall: string, open: Open): Error | undefined {
    const fault = this.syncFault?.(call, open.path, this.disk.inode(open.inode).type === 'directory')
    if (fault === undefined) return undefined
    if (fault === 'drop') {
      this.disk.drop(open.inode)
      open.reported = this.disk.inode(open.inode).failures
    }
    if (fault === 'abort') this.disk.aborted = true
    return new ModelError('EIO', syscall, open.path)
  }
}
