import type { Descriptor, FileSystem, Outcomes, RenameMode } from '../../../src/durable/file-system.js'
import { changeExtended, changeMode } from './access-lists.js'
import type { Inode } from './inode.js'
import { ModelError } from './model-disk.js'
import { ModelReader } from './model-reader.js'
import type { Open } from './open-files.js'

/** The failure inside a sync or a write-out: `drop`: the pages become clean; `keep`: they stay dirty; `abort`: the journal aborts. */
export type SyncFault = (
  call: 'sync' | 'startWriteOut',
  path: string,
  isDirectory: boolean,
) => 'drop' | 'keep' | 'abort' | undefined

/** A process on the model disk. It runs as root. */
export class ModelProcess extends ModelReader implements FileSystem {
  readonly stagedFiles = 256
  readonly openTargets = 256
  readonly callsAtATime = 8
  /** None stays open that is not used: so each is opened anew. */
  readonly openDirectories = 1
  readonly user = { uid: 0, gid: 0 }
  syncFault: SyncFault | undefined

  async openAppend(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openAppend', name)
    this.disk.writable('open', name)
    return this.open.openFile(parent, name, true)
  }

  async createFile(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('createFile', name)
    return this.open.addChild(parent, name, this.open.create(parent, name, 'file', 0o600), true)
  }

  async openLock(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openLock', name)
    const { inode } = this.open.of(parent)
    const found = this.disk.child(inode, name) ?? this.open.create(parent, name, 'file', 0o600)
    return this.open.addChild(parent, name, found, true)
  }

  async createDirectory(parent: Descriptor, name: string, mode = 0o700): Promise<void> {
    await this.before?.('createDirectory', name)
    this.open.create(parent, name, 'directory', mode)
  }

  async createLink(parent: Descriptor, name: string, text: string): Promise<void> {
    await this.before?.('createLink', name)
    this.open.create(parent, name, 'symlink', 0o777, text)
  }

  async write(file: Descriptor, bytes: Uint8Array): Promise<void> {
    const open = this.open.of(file)
    await this.before?.('write', open.path)
    this.disk.writable('write', open.path)
    if (!open.writes) throw new ModelError('EBADF', 'write', open.path)
    this.disk.append(open.inode, Buffer.from(bytes).toString('latin1'))
  }

  async copy(from: Descriptor, to: Descriptor): Promise<void> {
    const open = this.open.of(to)
    await this.before?.('copy', open.path)
    this.disk.writable('write', open.path)
    this.disk.append(open.inode, this.disk.inode(this.open.of(from).inode).now.data)
  }

  async setMode(descriptor: Descriptor, mode: number): Promise<void> {
    await this.#setMetadata(descriptor, 'setMode', 'fchmod', (attributes) => changeMode(attributes, mode))
  }

  async setOwner(descriptor: Descriptor, uid: number, gid: number): Promise<void> {
    await this.#setMetadata(descriptor, 'setOwner', 'fchown', () => ({ uid, gid }))
  }

  async setLinkOwner(parent: Descriptor, name: string, uid: number, gid: number): Promise<void> {
    await this.before?.('setLinkOwner', name)
    this.disk.writable('lchown', name)
    this.disk.setMetadata(this.open.child(parent, name, 'lchown').number, { uid, gid }, `chown ${name}`)
  }

  async setLabel(descriptor: Descriptor, label: Uint8Array): Promise<void> {
    const text = Buffer.from(label).toString('latin1')
    await this.#setMetadata(descriptor, 'setLabel', 'fsetxattr', () => ({ label: text }))
  }

  async setExtendedAttribute(descriptor: Descriptor, name: string, value: Uint8Array | undefined): Promise<void> {
    const text = value && Buffer.from(value).toString('latin1')
    const syscall = value ? 'fsetxattr' : 'fremovexattr'
    await this.#setMetadata(descriptor, 'setExtendedAttribute', syscall, (attributes) =>
      changeExtended(attributes, name, text),
    )
  }

  async startWriteOut(files: readonly Descriptor[]): Promise<Outcomes> {
    await this.before?.('startWriteOut', '')
    // It promises nothing: its bytes may have got to the disk before, too.
    return files.map((file) => this.#fault('startWriteOut', 'sync_file_range', this.open.of(file)))
  }

  async sync(descriptors: readonly Descriptor[]): Promise<Outcomes> {
    await this.before?.('sync', descriptors.map((descriptor) => this.open.of(descriptor).path).join(' '))
    return descriptors.map((descriptor) => {
      const open = this.open.of(descriptor)
      const failure = this.#fault('sync', 'fsync', open) ?? this.open.unreported(open)
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
    const source = this.open.child(fromParent, from, 'renameat2')
    this.open.refuseOtherDevice(source.number, toParent, to, 'renameat2')
    this.open.refuseCovered(fromParent, from, 'renameat2')
    this.open.refuseCovered(toParent, to, 'renameat2')
    const target = this.disk.child(this.open.of(toParent).inode, to)
    if (mode === 'exchange' && target === undefined) throw this.open.error('ENOENT', 'renameat2', toParent, to)
    if (mode === 'noreplace' && target) throw this.open.error('EEXIST', 'renameat2', toParent, to)
    if (mode === 'replace' && target) this.open.refuseReplacing(source, target, toParent, to)
    const left = mode === 'exchange' ? target?.number : undefined
    const [origin, goal] = [this.open.of(fromParent).inode, this.open.of(toParent).inode]
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
    if (this.open.child(parent, name, 'unlink').type === 'directory')
      throw this.open.error('EISDIR', 'unlink', parent, name)
    this.disk.writable('unlink', name)
    this.disk.link(this.open.of(parent).inode, [[name, undefined]], `unlink ${name}`)
  }

  async removeDirectory(parent: Descriptor, name: string): Promise<void> {
    await this.before?.('removeDirectory', name)
    const inode = this.open.child(parent, name, 'rmdir')
    if (inode.type !== 'directory') throw this.open.error('ENOTDIR', 'rmdir', parent, name)
    this.open.refuseCovered(parent, name, 'rmdir')
    if (inode.now.entries.size > 0) throw this.open.error('ENOTEMPTY', 'rmdir', parent, name)
    this.disk.writable('rmdir', name)
    this.disk.link(this.open.of(parent).inode, [[name, undefined]], `rmdir ${name}`)
  }

  tryLock(lock: Descriptor): boolean {
    return this.disk.tryLock(this.open.of(lock).inode, this)
  }

  lockHolder(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  async #setMetadata(
    descriptor: Descriptor,
    call: string,
    syscall: string,
    change: (attributes: Inode['now']['attributes']) => Partial<Inode['now']['attributes']>,
  ): Promise<void> {
    const { inode, path } = this.open.of(descriptor)
    await this.before?.(call, path)
    this.disk.writable(syscall, path)
    this.disk.setMetadata(inode, change(this.disk.inode(inode).now.attributes), syscall)
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
