import * as native from '../../../native/index.js'
import { clock } from '../../clock.js'
import type { Attributes, Descriptor, Entry, ExtendedAttributes, FileSystem, Outcomes } from '../file-system.js'
import { NodeFileSystem } from './file-system.js'
import { namedEach } from './open-path.js'
import { startWriteOutAll } from './sync.js'

/** Milliseconds of calls on the event loop before it gets its turn. */
const turnLength = 1
/** Milliseconds that one call may take: after a longer one, all calls go to threads. */
const patience = 100
/** Bytes: longer reads and writes go to a thread. */
const mostBytes = 64 * 1024

/** The turn of the event loop in which the calls run. */
let turn: { readonly since: number; readonly next: Promise<void> } | undefined

/** undefined while there is time left in this turn; else the next one. */
function nextTurn(now: number): Promise<void> | undefined {
  turn ??= {
    since: now,
    next: new Promise((resolve) =>
      setImmediate(() => {
        turn = undefined
        resolve()
      }),
    ),
  }
  return now - turn.since < turnLength ? undefined : turn.next
}

/**
 * The real file system, for a process whose event loop may wait for its disk: short calls run at once, which takes half the processor time.
 * The barriers, the wait for a write-out and long calls run on threads, here too.
 */
export class AtOnceFileSystem extends NodeFileSystem {
  /** Its disk has made a call wait. */
  #isSlow = false

  #atOnce<T>(start: () => Promise<T>): Promise<T> {
    if (this.#isSlow) return start()
    const since = clock.now()
    const next = nextTurn(since)
    if (next !== undefined) return next.then(() => this.#atOnce(start))
    const started = native.atOnce(start)
    this.#isSlow = clock.now() - since > patience
    return started
  }

  override openPath(path: string): Promise<Descriptor> {
    return this.#atOnce(() => super.openPath(path))
  }

  override openContent(path: string, follow: boolean, root?: Descriptor): Promise<Descriptor> {
    return this.#atOnce(() => super.openContent(path, follow, root))
  }

  override openDirectory(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#atOnce(() => super.openDirectory(parent, name))
  }

  override openFile(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#atOnce(() => super.openFile(parent, name))
  }

  override createFile(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#atOnce(() => super.createFile(parent, name))
  }

  override openLock(parent: Descriptor, name: string): Promise<Descriptor> {
    return this.#atOnce(() => super.openLock(parent, name))
  }

  override createDirectory(parent: Descriptor, name: string, mode?: number): Promise<void> {
    return this.#atOnce(() => super.createDirectory(parent, name, mode))
  }

  override list(directory: Descriptor, most?: number): Promise<string[]> {
    return this.#atOnce(() => super.list(directory, most))
  }

  override entries(directory: Descriptor, most?: number): Promise<Entry[]> {
    return this.#atOnce(() => super.entries(directory, most))
  }

  override look(parent: Descriptor, name: string): Promise<Attributes | undefined> {
    return this.#atOnce(() => super.look(parent, name))
  }

  override write(file: Descriptor, bytes: Uint8Array): Promise<void> {
    return bytes.length > mostBytes ? super.write(file, bytes) : this.#atOnce(() => super.write(file, bytes))
  }

  override read(file: Descriptor, size?: number): AsyncGenerator<Uint8Array, void, void> {
    const pieces = super.read(file, size)
    if (size === undefined || size > mostBytes) return pieces
    const next = pieces.next.bind(pieces)
    return Object.assign(pieces, { next: () => this.#atOnce(next) })
  }

  override setMode(descriptor: Descriptor, mode: number): Promise<void> {
    return this.#atOnce(() => super.setMode(descriptor, mode))
  }

  override setOwner(descriptor: Descriptor, uid: number, gid: number): Promise<void> {
    return this.#atOnce(() => super.setOwner(descriptor, uid, gid))
  }

  override label(descriptor: Descriptor): Promise<Uint8Array | undefined> {
    return this.#atOnce(() => super.label(descriptor))
  }

  override extendedAttributes(descriptor: Descriptor): Promise<ExtendedAttributes | undefined> {
    return this.#atOnce(() => super.extendedAttributes(descriptor))
  }

  /** Each but the wait for the last: it puts pages into the disk's queue. */
  override async startWriteOut(files: readonly Descriptor[]): Promise<Outcomes> {
    const start = (file: Descriptor): Promise<void> => this.#atOnce(() => native.startWriteOut(file, false))
    return namedEach(files, await startWriteOutAll(files, start))
  }

  override close(descriptor: Descriptor): Promise<void> {
    return this.#atOnce(() => super.close(descriptor))
  }

  override rename(...args: Parameters<FileSystem['rename']>): Promise<void> {
    return this.#atOnce(() => super.rename(...args))
  }

  override removeFile(parent: Descriptor, name: string): Promise<void> {
    return this.#atOnce(() => super.removeFile(parent, name))
  }

  override removeDirectory(parent: Descriptor, name: string): Promise<void> {
    return this.#atOnce(() => super.removeDirectory(parent, name))
  }
}
