import * as native from '../../../native/index.js'
import { clock } from '../../clock.js'
import type { Descriptor, Outcomes } from '../file-system.js'
import { NodeFileSystem } from './file-system.js'
import { namedEach } from './open-path.js'
import { startWriteOutAll } from './sync.js'

/** Milliseconds of calls on the event loop before it gets its turn. */
const turnLength = 1
/** Milliseconds that one call may take: after a longer one, all calls go to threads. */
const patience = 100
/** Bytes: longer reads and writes go to a thread. */
const mostBytes = 64 * 1024

/** Calls that the kernel mostly answers from memory, whatever their arguments. */
const short = [
  'openPath',
  'openContent',
  'openDirectory',
  'openFile',
  'createFile',
  'openLock',
  'createDirectory',
  'list',
  'entries',
  'look',
  'lookPath',
  'setMode',
  'setOwner',
  'label',
  'extendedAttributes',
  'close',
  'rename',
  'removeFile',
  'removeDirectory',
] as const

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

  constructor() {
    super()
    for (const name of short) {
      const onThread = this[name].bind(this) as (...args: unknown[]) => Promise<unknown>
      Object.assign(this, { [name]: (...args: unknown[]) => this.#atOnce(() => onThread(...args)) })
    }
  }

  #atOnce<T>(start: () => Promise<T>): Promise<T> {
    if (this.#isSlow) return start()
    const since = clock.now()
    const next = nextTurn(since)
    if (next !== undefined) return next.then(() => this.#atOnce(start))
    const started = native.atOnce(start)
    this.#isSlow = clock.now() - since > patience
    return started
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

  /** Each but the wait for the last: it puts pages into the disk's queue. */
  override async startWriteOut(files: readonly Descriptor[]): Promise<Outcomes> {
    const start = (file: Descriptor): Promise<void> => this.#atOnce(() => native.startWriteOut(file, false))
    return namedEach(files, await startWriteOutAll(files, start))
  }
}
