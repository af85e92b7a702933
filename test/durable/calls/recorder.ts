import type { Descriptor, FileSystem, Outcomes } from '../../../src/durable/file-system.js'
import { codeOf } from '../../../src/errors.js'
import type { Inode } from '../../crash/model/inode.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { failure } from '../intercepted.js'

/** The call that fails: the nth, counted from 0, with this errno. */
export interface Fault {
  readonly index: number
  readonly code: string
}

/** Another program acts before the nth call, or the caller aborts then. */
export interface Meanwhile {
  readonly index: number
  readonly act: (disk: ModelDisk) => unknown
}

/** One call of the FileSystem interface. Inodes have the model's numbers. */
export interface Call {
  readonly index: number
  readonly name: string
  readonly words: () => string
  /** Of its file or directory, as the program opened it. */
  readonly path: string
  /** The inodes of its descriptors. */
  readonly on: readonly number[]
  /** The name that it works on in the first of these, and what that leads to before. */
  readonly entry: string | undefined
  readonly found: number | undefined
  /** The new place of a rename, and the entry there before. */
  readonly to: { readonly path: string; readonly entry: string; readonly found: number | undefined } | undefined
  /** Of a change: the disk before it. */
  readonly before: ModelDisk | undefined
  /** Of a rename: the parts of the moved tree, or of the generation behind the moved link, that are not on stable storage. */
  readonly unsynced: readonly string[]
  /** Its errno, unless it succeeds; of a sync that of any descriptor. */
  failed: string | undefined
  /** A descriptor that it opens; the one that tryLock locks, or that close closes. */
  descriptor: Descriptor | undefined
}

/** What the arguments of a call are: a descriptor and a name in it, a descriptor, or several. */
const parented =
  /^(openDirectory|openFile|openAppend|createFile|openLock|createDirectory|createLink|readLink|look|setLinkOwner|removeFile|removeDirectory|rename)$/
const opens = /^(open(?!Directories)|createFile$)/
const never = new Set(['random', 'now', 'uptime', 'bootId'])
const changes = /^(create|openLock|write$|copy|set|rename|remove)/

/** Whether a call changes the disk, if it succeeds. */
export const isChange = ({ name }: Pick<Call, 'name'>): boolean => changes.test(name)

function words(value: unknown): string {
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('latin1'))
  if (value === undefined) return 'nothing'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const octal = (mode: unknown): string => `0${Number(mode).toString(8)}`

/** A process whose descriptors can be asked for their inodes. */
export class TracedProcess extends ModelProcess {
  /** undefined: it is not open. */
  inodeOf(descriptor: Descriptor): number | undefined {
    try {
      return this.open.of(descriptor).inode
    } catch {
      return undefined
    }
  }
}

/** The calls of the FileSystem interface that a process makes; one of them can be made to fail, and another program can come before one. */
export class Recorder {
  readonly calls: Call[] = []
  readonly fs: FileSystem
  readonly #paths = new Map<Descriptor, string>()

  constructor(
    readonly process: TracedProcess,
    readonly fault?: Fault,
    readonly meanwhile?: Meanwhile,
  ) {
    const calls = new Map<string, unknown>()
    this.fs = new Proxy<FileSystem>(process, {
      get: (target, name: string) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function' || never.has(name)) return value
        if (!calls.has(name)) {
          const real = value.bind(target) as (...args: readonly unknown[]) => unknown
          calls.set(name, (...args: readonly unknown[]) => this.#make(name, args, real))
        }
        return calls.get(name)
      },
    })
  }

  #make(name: string, args: readonly unknown[], real: (...args: readonly unknown[]) => unknown): unknown {
    const { fault, meanwhile } = this
    const index = this.calls.length
    const call = this.#note(name, args)
    this.calls.push(call)
    const fails = fault?.index === index
    const code = fault?.code ?? ''
    if (fails) call.failed = code
    if (name === 'tryLock') {
      const locked = !fails && real(...args) === true
      if (!locked) call.failed = 'EAGAIN'
      return locked
    }
    if (name === 'read') return fails ? throwing(failure(code, name)) : real(...args)
    return (async () => {
      if (meanwhile?.index === index) await meanwhile.act(this.process.disk)
      try {
        if (fails && (name === 'sync' || name === 'startWriteOut')) {
          const [, ...outcomes] = (await real(...args)) as Outcomes
          return [failure(code, name), ...outcomes]
        }
        if (fails && name !== 'close') throw failure(code, name)
        const result = await real(...args)
        if (opens.test(name)) {
          call.descriptor = result as Descriptor
          this.#paths.set(result as Descriptor, call.path)
        }
        if (name === 'sync') call.failed ??= codeOf((result as Outcomes).find((outcome) => outcome !== undefined))
        return result
      } catch (error) {
        call.failed ??= codeOf(error) ?? 'an error'
        throw error
      }
    })()
  }

  #note(name: string, args: readonly unknown[]): Call {
    const { disk } = this.process
    const path = this.#pathOf(name, args)
    const descriptors = (Array.isArray(args[0]) ? args[0] : [args[0]]) as readonly unknown[]
    const on = descriptors.flatMap((one) => (typeof one === 'number' ? (this.process.inodeOf(one) ?? []) : []))
    const entry = parented.test(name) ? String(args[1]) : undefined
    const child = (directory: number | undefined, at: string): number | undefined =>
      directory === undefined ? undefined : disk.child(directory, at)?.number
    const found = entry === undefined ? undefined : child(on[0], entry)
    const toParent = name === 'rename' ? this.process.inodeOf(args[2] as Descriptor) : undefined
    const to =
      name === 'rename'
        ? {
            path: `${this.#path(args[2])}/${String(args[3])}`,
            entry: String(args[3]),
            found: child(toParent, String(args[3])),
          }
        : undefined
    return {
      index: this.calls.length,
      name,
      // Where a report asks: a descriptor's number is never used again.
      words: () => `${name} ${this.#wordsOf(name, path, args)}`,
      path,
      on: toParent === undefined ? on : [...on, toParent],
      entry,
      found,
      to,
      before: changes.test(name) ? disk.fork() : undefined,
      unsynced: found !== undefined && to ? unsyncedIn(disk, found, on[0]) : [],
      failed: undefined,
      descriptor: name === 'close' || name === 'tryLock' ? (args[0] as Descriptor) : undefined,
    }
  }

  #path(descriptor: unknown): string {
    return this.#paths.get(descriptor as Descriptor) ?? `descriptor ${String(descriptor)}`
  }

  #pathOf(name: string, [first, second]: readonly unknown[]): string {
    if (typeof first === 'string') return first
    return parented.test(name) ? `${this.#path(first).replace(/^\/$/, '')}/${String(second)}` : this.#path(first)
  }

  #wordsOf(name: string, path: string, args: readonly unknown[]): string {
    if (Array.isArray(args[0])) return args[0].map((descriptor) => this.#path(descriptor)).join(' ')
    if (name === 'copy') return `${path} ${this.#path(args[1])}`
    if (name === 'rename') {
      const [from, old, to, target, mode] = args
      return `${this.#path(from)}/${String(old)} ${this.#path(to)}/${String(target)} ${String(mode)}`
    }
    const rest = args.slice(parented.test(name) ? 2 : 1)
    const isMode = name === 'setMode' || name === 'createDirectory'
    return [path, ...rest.map(isMode ? octal : words)].join(' ')
  }
}

/** Whether all of a file or directory is on stable storage. */
export function isOnDisk({ type, disk, now, past, changes, lost }: Inode): boolean {
  if (type === 'directory') return disk !== undefined && past.length + changes.length === 0
  return disk === now && !lost
}

/** What below an inode is not on stable storage. A symbolic link cannot be synced; the generation that it names counts instead. */
function unsyncedIn(disk: ModelDisk, root: number, holder: number | undefined): string[] {
  const faults: string[] = []
  const walk = (number: number, path: string): void => {
    const inode = disk.inode(number)
    if (inode.type === 'symlink') return
    if (!isOnDisk(inode)) faults.push(path || '.')
    for (const [name, child] of inode.now.entries) walk(child, path === '' ? name : `${path}/${name}`)
  }
  const { type, now } = disk.inode(root)
  const named = type === 'symlink' && holder !== undefined ? disk.child(holder, now.data) : undefined
  walk(named?.number ?? root, '')
  return faults
}

async function* throwing(error: Error): AsyncGenerator<Uint8Array> {
  await Promise.reject(error)
}
