import type { Descriptor, FileSystem, Outcomes } from '../../../src/durable/file-system.js'
import type { ModelProcess } from '../../crash/model/model-process.js'
import { failure } from '../intercepted.js'

/** What is to fail: the nth call, counted from 0, with this errno. */
export interface Fault {
  readonly index: number
  readonly code: string
}

export interface Call {
  readonly name: string
  readonly words: string
}

/** What the arguments of a call are: a descriptor and a name in it, a descriptor, or several. */
const parented =
  /^(openDirectory|openFile|openAppend|createFile|openLock|createDirectory|createLink|readLink|look|setLinkOwner|removeFile|removeDirectory)$/
const opens = /^(open(?!Directories)|createFile$)/
const never = new Set(['random', 'now', 'bootId'])

function words(value: unknown): string {
  if (value instanceof Uint8Array) {
    return JSON.stringify(Buffer.from(value).toString('latin1'))
  }
  if (value === undefined) return 'nothing'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const octal = (mode: unknown): string => `0${Number(mode).toString(8)}`

/** The calls of the FileSystem interface that a process makes, as words; one of them can be made to fail. */
export class Recorder {
  readonly calls: Call[] = []
  readonly fs: FileSystem
  readonly #paths = new Map<Descriptor, string>()

  constructor(process: ModelProcess, fault?: Fault) {
    const failsNow = (): boolean => fault !== undefined && this.calls.length - 1 === fault.index
    const thrown = (name: string): Error => failure(fault?.code ?? '', name)
    this.fs = new Proxy<FileSystem>(process, {
      get: (target, name: string) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function' || never.has(name)) return value
        const real = value.bind(target) as (...args: readonly unknown[]) => unknown
        return (...args: readonly unknown[]) => {
          const path = this.#pathOf(name, args)
          this.calls.push({ name, words: `${name} ${this.#wordsOf(name, path, args)}` })
          const fails = failsNow()
          if (name === 'tryLock') return fails ? false : real(...args)
          if (name === 'read') return fails ? throwing(thrown(name)) : real(...args)
          return (async () => {
            if (fails && (name === 'sync' || name === 'startWriteOut')) {
              const [, ...outcomes] = (await real(...args)) as Outcomes
              return [thrown(name), ...outcomes]
            }
            if (fails && name !== 'close') throw thrown(name)
            const result = await real(...args)
            if (opens.test(name)) this.#paths.set(result as Descriptor, path)
            return result
          })()
        }
      },
    })
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

async function* throwing(error: Error): AsyncGenerator<Uint8Array> {
  await Promise.reject(error)
}
