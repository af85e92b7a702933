/*
 * Each call that native/ makes of libc: a test sees its bytes, and may answer it with an errno that no file system here would give. All
 * other calls go to the kernel. Import it before the code under test.
 */
import koffi from 'koffi'
import { constants } from 'node:os'
import type { Test } from 'tap'
import { systemCallNumbers } from './system-call-numbers.js'

/** The arguments of one call; a system call without its number. */
type Arguments = readonly unknown[]

/** Its result: a return value, an errno, or koffi's own error. */
export type Answer = number | keyof typeof constants.errno | Error

/** undefined: the kernel answers. */
type Answers = Record<string, (...args: Arguments) => Answer | Promise<Answer> | undefined>

let answers: Answers = {}
let missing: readonly string[] = []
let dirt = 0
let errno: number | undefined
const memory = new Map<bigint, DataView>()

/** Answers these calls until the test ends. */
export function answer(t: Test, others: Answers): void {
  const before = answers
  answers = { ...answers, ...others }
  t.teardown(() => (answers = before))
}

/** libc has no such functions meanwhile, as musl has no malloc_trim. */
export function without(names: readonly string[], act: () => void): void {
  missing = names
  act()
  missing = []
}

/** Fresh allocations hold this byte meanwhile, as used memory does. */
export function withDirt<T>(byte: number, act: () => T): T {
  dirt = byte
  try {
    return act()
  } finally {
    dirt = 0
  }
}

/** The memory at this address, or of this array. Throws without an allocation there. */
export function memoryAt(address: unknown): DataView {
  if (address instanceof Uint8Array) return new DataView(address.buffer)
  const view = memory.get(address as bigint)
  if (view) return view
  for (const [start, { buffer, byteLength }] of memory) {
    const offset = Number((address as bigint) - start)
    if (offset > 0 && offset < byteLength) return new DataView(buffer, offset)
  }
  throw new Error(`nothing was allocated at ${String(address)}`)
}

type Done = (error: Error | null, result: number) => void

/** As koffi binds a function. */
interface Called {
  (...args: unknown[]): unknown
  async(...args: unknown[]): void
}

function nameOf(name: string, args: Arguments): string {
  if (name !== 'syscall') return name
  const index = process.arch === 'arm64' ? 1 : 0
  return Object.entries(systemCallNumbers).find(([, numbers]) => numbers[index] === args[0])?.[0] ?? name
}

function asked(name: string, args: Arguments): Answer | Promise<Answer> | undefined {
  return answers[nameOf(name, args)]?.(...(name === 'syscall' ? args.slice(1) : args))
}

/** The call's return value; its errno is the next one that the code reads. */
function returned(one: Exclude<Answer, Error>): number {
  if (typeof one === 'number') return one
  errno = constants.errno[one]
  return -1
}

function watched(name: string, real: Called): unknown {
  const now = (...args: unknown[]): unknown => {
    const one = asked(name, args)
    if (one === undefined) return real(...args)
    if (one instanceof Error || one instanceof Promise) throw new Error(`${name} is answered at once, by a number`)
    return returned(one)
  }
  const async = (...all: unknown[]): void => {
    const [args, done] = [all.slice(0, -1), all.at(-1) as Done]
    const one = asked(name, args)
    if (one === undefined) {
      real.async(...all)
      return
    }
    const end = (result: Answer): void => {
      if (result instanceof Error) done(result, 0)
      else done(null, returned(result))
    }
    if (one instanceof Promise) void one.then(end)
    else setImmediate(end, one)
  }
  return Object.assign(now, { async })
}

const { alloc, errno: lastErrno, load } = koffi
Object.assign(koffi, {
  load(path: string | null) {
    const library = load(path)
    return {
      func(name: string, result: string, parameters: string[]) {
        if (missing.includes(name)) throw new Error(`no ${name} in this libc`)
        return watched(name, library.func(name, result, parameters) as Called)
      },
    }
  },
  alloc(type: string, length: number): unknown {
    const pointer: unknown = alloc(type, length)
    const view = new DataView(koffi.view(pointer, length))
    memory.set(koffi.address(pointer), view)
    if (dirt !== 0) new Uint8Array(view.buffer).fill(dirt)
    return pointer
  },
  errno(): number {
    const last = errno ?? lastErrno()
    errno = undefined
    return last
  },
})

/** The code and the call of a failure, or what came instead. */
export async function failureOf(calling: Promise<unknown> | (() => unknown)): Promise<unknown> {
  try {
    return await (typeof calling === 'function' ? calling() : calling)
  } catch (error) {
    const { name, code, syscall, message } = error as NodeJS.ErrnoException
    return code === undefined ? `${name}: ${message}` : `${syscall ?? ''} ${code}`
  }
}
