import { hash } from 'node:crypto'
import { basename, dirname, resolve } from 'node:path'
import type {
  Attributes,
  Descriptor,
  Entry,
  ExtendedAttributes,
  Free,
  Mount,
  Writers,
} from '../../../src/durable/file-system.js'
import { codeOf } from '../../../src/errors.js'
import { decoded } from './access-lists.js'
import type { Inode, State } from './inode.js'
import { deviceOf, type ModelDisk, ModelError, numberOnDevice, rootInode } from './model-disk.js'
import { OpenFiles, type OpenMount } from './open-files.js'

/** Called before each call of the FileSystem interface; its error is the call's failure, before any effect. */
export type Before = (call: string, name: string) => void | Promise<void>

/** States are immutable, and most are looked at again and again. */
const stamps = new WeakMap<State, bigint>()

/** Another one for another state: what a time of change is on a disk. */
function stampOf(state: State): bigint {
  let stamp = stamps.get(state)
  if (stamp === undefined) {
    stamp = BigInt(`0x${hash('sha1', JSON.stringify([state.attributes, state.data]))}`)
    stamps.set(state, stamp)
  }
  return stamp
}

let processes = 0

/** The part of a process that only opens and reads. */
export abstract class ModelReader {
  before: Before | undefined
  protected readonly open: OpenFiles
  /** Each process sees another device number, since the core keeps a queue for each target in its process. */
  readonly #device = ++processes

  constructor(readonly disk: ModelDisk) {
    this.open = new OpenFiles(disk)
  }

  /** Descriptors that are open. */
  get descriptors(): number {
    return this.open.size
  }

  async openPath(path: string): Promise<Descriptor> {
    await this.before?.('openPath', path)
    return this.#openPath(path)
  }

  #openPath(path: string): Descriptor {
    let inode = this.disk.inode(rootInode)
    let mount: OpenMount = { id: 1, root: '/', mountPoint: '/' }
    let at = ''
    for (const part of path.split('/').filter((text) => text !== '')) {
      const next = this.disk.child(inode.number, part)
      if (next === undefined) throw new ModelError('ENOENT', 'openat2', path)
      if (next.type !== 'directory')
        throw new ModelError(next.type === 'symlink' ? 'ELOOP' : 'ENOTDIR', 'openat2', path)
      at += `/${part}`
      const mounted = this.disk.mountedAt(inode.number, part)
      if (mounted) mount = { ...mounted, mountPoint: at }
      else if (deviceOf(next.number) !== deviceOf(inode.number)) mount = { id: 2, root: '/', mountPoint: at }
      inode = next
    }
    return this.open.add(inode, path, mount, false)
  }

  async openDirectory(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openDirectory', name)
    const inode = this.open.child(parent, name, 'open')
    if (inode.type !== 'directory') throw this.open.error('ENOTDIR', 'open', parent, name)
    this.open.refuseOtherDevice(inode.number, parent, name, 'openat2')
    return this.open.addChild(parent, name, inode, false)
  }

  async openFile(parent: Descriptor, name: string): Promise<Descriptor> {
    await this.before?.('openFile', name)
    return this.open.openFile(parent, name, false)
  }

  async openContent(path: string, follow: boolean): Promise<Descriptor> {
    await this.before?.('openContent', path)
    const parent = this.#openPath(dirname(path))
    const name = basename(path)
    try {
      const inode = this.open.child(parent, name, 'open')
      if (!follow || inode.type !== 'symlink') return this.open.openFile(parent, name, false)
      return await this.openContent(resolve(dirname(path), inode.now.data), follow)
    } finally {
      await this.close(parent)
    }
  }

  async readLink(parent: Descriptor, name: string): Promise<string> {
    await this.before?.('readLink', name)
    const inode = this.open.child(parent, name, 'readlink')
    if (inode.type !== 'symlink') throw this.open.error('EINVAL', 'readlink', parent, name)
    return inode.now.data
  }

  async readLinkPath(path: string): Promise<string> {
    const { parent, name } = await this.#lastOf(path)
    return this.readLink(parent, name).finally(() => this.close(parent))
  }

  async list(directory: Descriptor): Promise<string[]> {
    await this.before?.('list', '')
    return [...this.disk.inode(this.open.of(directory).inode).now.entries.keys()]
  }

  async entries(directory: Descriptor): Promise<Entry[]> {
    await this.before?.('entries', '')
    const found = this.disk.inode(this.open.of(directory).inode).now.entries
    return [...found].map(([name, number]) => ({ name, type: this.disk.inode(number).type }))
  }

  async look(parent: Descriptor, name: string): Promise<Attributes | undefined> {
    await this.before?.('look', name)
    const found = this.disk.child(this.open.of(parent).inode, name)
    return found && this.#attributes(found)
  }

  async lookPath(path: string): Promise<Attributes | undefined> {
    if (path === '/') return this.#attributes(this.disk.inode(rootInode))
    try {
      const { parent, name } = await this.#lastOf(path)
      return await this.look(parent, name).finally(() => this.close(parent))
    } catch (error) {
      // As lstat(2): a directory above it is not there either.
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    }
  }

  /** It runs as root. */
  async accessPath(path: string): Promise<void> {
    await this.before?.('accessPath', path)
    if ((await this.lookPath(path)) === undefined) throw new ModelError('ENOENT', 'access', path)
  }

  async attributes(descriptor: Descriptor): Promise<Attributes> {
    await this.before?.('attributes', '')
    return this.#attributes(this.disk.inode(this.open.of(descriptor).inode))
  }

  async *read(file: Descriptor): AsyncIterable<Uint8Array> {
    await this.before?.('read', this.open.of(file).path)
    yield Buffer.from(this.disk.inode(this.open.of(file).inode).now.data, 'latin1')
  }

  async label(descriptor: Descriptor): Promise<Uint8Array | undefined> {
    await this.before?.('label', '')
    const { label } = this.disk.inode(this.open.of(descriptor).inode).now.attributes
    return label === '' ? undefined : Buffer.from(label, 'latin1')
  }

  async extendedAttributes(descriptor: Descriptor): Promise<ExtendedAttributes | undefined> {
    await this.before?.('extendedAttributes', '')
    const { extended } = this.disk.inode(this.open.of(descriptor).inode).now.attributes
    if (extended === '') return undefined
    return new Map([...decoded(extended)].map(([name, value]) => [name, Buffer.from(value, 'latin1')]))
  }

  /** Who uses what: in the model, everything or nothing. */
  userOf(): Promise<string | undefined> {
    return Promise.resolve(this.disk.user)
  }

  writersIn(): Promise<Writers> {
    return Promise.resolve({ writer: undefined, unseen: undefined })
  }

  free(): Promise<Free> {
    return Promise.resolve({ bytes: 1 << 30, inodes: undefined, blockSize: 4096 })
  }

  immovable(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  mountsBelow(directory: Descriptor): Promise<string[]> {
    return Promise.resolve(this.disk.mountsBelow(this.open.of(directory).inode))
  }

  async mount(descriptor: Descriptor): Promise<Mount> {
    const { inode, mount } = this.open.of(descriptor)
    await this.before?.('mount', '')
    return { ...mount, type: 'model', device: `0:${deviceOf(inode)}`, proven: true, lasting: true }
  }

  async close(descriptor: Descriptor): Promise<void> {
    const open = this.open.of(descriptor)
    this.open.remove(descriptor)
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

  uptime(): number {
    return 60_000
  }

  #attributes({ number, type, now }: Inode): Attributes {
    const { mode, uid, gid } = now.attributes
    return {
      type,
      device: 2 * this.#device + deviceOf(number),
      inode: BigInt(numberOnDevice(number)),
      birth: BigInt(number) + 1n,
      mode,
      uid,
      gid,
      size: now.data.length,
      flags: 0,
      changed: stampOf(now),
      links: this.disk.namesOf(number),
    }
  }

  async #lastOf(path: string): Promise<{ parent: Descriptor; name: string }> {
    const cut = path.lastIndexOf('/')
    return { parent: await this.openPath(path.slice(0, cut) || '/'), name: path.slice(cut + 1) }
  }
}
