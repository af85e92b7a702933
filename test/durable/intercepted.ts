import { readlinkSync } from 'node:fs'
import type { FileSystem } from '../../src/durable/file-system.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'

/** Called, and awaited, before each call of the FileSystem interface that can fail; throwing makes the call fail. */
export type Interceptor = (call: string, args: readonly unknown[], index: number) => unknown

const infallible = new Set(['random', 'now', 'uptime', 'user'])

async function* readAfter(told: Promise<unknown>, read: () => unknown): AsyncIterable<Uint8Array> {
  await told
  yield* read() as AsyncIterable<Uint8Array>
}

/** The real file system, each call of which can be watched or made to fail. `close` is never stopped. */
export function intercepted(
  intercept: Interceptor,
  real = new NodeFileSystem(),
): { fs: FileSystem; open: Set<number> } {
  const open = new Set<number>()
  let index = 0
  const fs = new Proxy(real, {
    get(target, property: keyof FileSystem) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function' || infallible.has(property)) return value
      const call = value.bind(target) as (...args: unknown[]) => unknown
      return (...args: unknown[]) => {
        if (property === 'close') {
          open.delete(args[0] as number)
          return call(...args)
        }
        if (property === 'tryLock') return call(...args)
        if (property === 'read') {
          const told = intercept(property, args, ++index)
          return told instanceof Promise ? readAfter(told, () => call(...args)) : call(...args)
        }
        return (async () => {
          await intercept(property, args, ++index)
          const result = await call(...args)
          if (/^(open|create(File))/.test(property) && typeof result === 'number') open.add(result)
          return result
        })()
      }
    },
  })
  return { fs, open }
}

/** The real file system, each call of one name of which fails so. */
export const failing = (
  name: string,
  code: string,
  syscall: string,
  real?: NodeFileSystem,
): ReturnType<typeof intercepted> =>
  intercepted((call) => {
    if (call === name) throw failure(code, syscall)
  }, real)

/** The real file system, and the paths of all that is synced on it. */
export function watchedSyncs(real?: NodeFileSystem): { fs: FileSystem; synced: Set<string> } {
  const synced = new Set<string>()
  const { fs } = intercepted((call, [descriptors]) => {
    if (call !== 'sync') return
    for (const descriptor of descriptors as readonly number[]) synced.add(readlinkSync(`/proc/self/fd/${descriptor}`))
  }, real)
  return { fs, synced }
}

/** The real file system; `act` runs before one of the calls. It only observes the synchronous ones. */
export function beside(
  real: NodeFileSystem,
  isNow: (call: string) => boolean,
  act: () => Promise<unknown>,
): FileSystem {
  return new Proxy(real, {
    get(target, property: keyof FileSystem) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      const call = value.bind(target) as (...args: unknown[]) => unknown
      if (/^(open|look|list|attributes)/.test(property)) {
        return async (...args: unknown[]) => {
          if (isNow(property)) await act()
          return call(...args)
        }
      }
      return (...args: unknown[]) => {
        if (property === 'random') isNow(property)
        return call(...args)
      }
    },
  })
}

/** A failure as a system call gives it. */
export function failure(code: string, syscall: string): Error {
  return Object.assign(new Error(`${syscall}: ${code}`), { code, syscall })
}

/** What a process that was killed does: nothing any more. */
export class Killed extends Error {}

/** The same disk, by another boot. */
export class Rebooted extends NodeFileSystem {
  override bootId(): Promise<string> {
    return Promise.resolve('another boot')
  }
}

/** Where no durability is proven. */
export class Unproven extends NodeFileSystem {
  override async mount(...args: Parameters<NodeFileSystem['mount']>) {
    return { ...(await super.mount(...args)), proven: false, lasting: false }
  }
}
