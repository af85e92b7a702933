import { loadKoffi } from './load-koffi.js'
import { isAtOnce, Lane, Semaphore } from './loop.js'
import koffi, { type KoffiFunc } from 'koffi'

/*
 * koffi passes arguments on unchecked: an embedded NUL truncates a string, a number given for a pointer is an address, and NaN becomes
 * descriptor 0. So each function checks its arguments before the call; a TypeError is the caller's defect.
 */

const maximumDescriptor = 0x7fffffff

/** AT_FDCWD: a relative path is meant from the working directory. */
export const workingDirectory = -100

/** A descriptor: an integer from 0. Throws TypeError. */
export function checkDescriptor(fd: number): number {
  if (!Number.isInteger(fd) || fd < 0 || fd > maximumDescriptor) {
    throw new TypeError(`not a file descriptor: ${String(fd)}`)
  }
  return fd
}

/** A directory descriptor, or AT_FDCWD. Throws TypeError. */
export function checkDirectory(fd: number): number {
  return fd === workingDirectory ? fd : checkDescriptor(fd)
}

/** A path that the kernel will read as it is written: not empty, no NUL. Throws TypeError. */
export function checkText(path: string): string {
  if (typeof path !== 'string' || path === '') throw new TypeError('a path must be a string that is not empty')
  if (path.includes('\0')) throw new TypeError('a path cannot hold a NUL byte')
  return path
}

/** An integer between two bounds, both allowed. Throws TypeError. */
export function checkInteger(name: string, value: number, minimum: number, maximum: number): number {
  if (!Number.isInteger(value) || value < minimum || value > maximum) {
    throw new TypeError(`${name} must be an integer from ${minimum} to ${maximum}, not ${String(value)}`)
  }
  return value
}

/* holdfast calls the kernel: other systems may install it, and learn at the first call that it does not run there. */

/** @throws Error on any other system */
function requireLinux(): void {
  if (process.platform !== 'linux') throw new Error(`holdfast runs on Linux, and this is ${process.platform}`)
}

/** Resolves once libc can be called; a caller of the library may be the first who needs it. @throws Error on any other system */
export async function ready(): Promise<void> {
  requireLinux()
  await loadKoffi()
}

type Argument = number | bigint | string | Uint8Array | null

/**
 * One function of libc, called at once, or on a thread of libuv's pool. koffi binds it at its first call, so that this module loads where
 * there is no libc to bind, as on a Mac.
 */
export class LibcFunction {
  #bound: KoffiFunc<(...args: Argument[]) => number> | undefined

  constructor(
    private readonly name: string,
    private readonly result: string,
    private readonly parameters: string[],
    /** Of a system call: its number. */
    readonly first: readonly number[] = [],
  ) {}

  /** @throws Error where libc has no such function */
  get bound(): KoffiFunc<(...args: Argument[]) => number> {
    const { name, result, parameters } = this
    return (this.#bound ??= libc().library.func(name, result, parameters) as KoffiFunc<(...args: Argument[]) => number>)
  }
}

export interface CallResult {
  /** What the call returned; -1 stands for failure. */
  readonly result: number
  /** errno as the call left it. Means nothing unless the call failed. */
  readonly errno: number
}

/** More calls than libuv has threads, so that no thread waits for the next one. Beyond 256 koffi throws. */
const mostCalls = 32
/** koffi's own limit, where other code in this process has loaded a library by koffi before. */
const defaultPools = 8

interface Libc {
  readonly library: ReturnType<typeof koffi.load>
  /**
   * A call beyond those that koffi keeps stacks for maps and unmaps its own, many times the cost of the call. Each lane has another bound,
   * so that a hanging one leaves the others theirs.
   */
  readonly queue: Semaphore
}

let opened: Libc | undefined

function libc(): Libc {
  if (opened !== undefined) return opened
  requireLinux()
  // koffi takes no setting once it has loaded a library.
  const queue = new Semaphore(keepStacks(mostCalls) ? mostCalls : defaultPools)
  return (opened = { queue, library: koffi.load(null) })
}

function keepStacks(calls: number): boolean {
  try {
    koffi.config({ resident_async_pools: calls })
    return true
  } catch {
    return false
  }
}

/** Binds a function of libc, glibc's and musl's alike: `declare('flock', 'int', ['int', 'int'])`. */
export function declare(name: string, result: string, parameters: string[]): LibcFunction {
  return new LibcFunction(name, result, parameters)
}

/**
 * Binds a system call by its number, for what musl 1.2.3 (renameat2, openat2) or every libc (AIO) has no function for.
 * The arity is fixed: koffi's variadic declarations have no asynchronous form.
 */
export function declareSystemCall(name: keyof typeof systemCalls, parameters: string[]): LibcFunction {
  return new LibcFunction('syscall', 'long', ['long', ...parameters], [systemCallNumber(name)])
}

/** Source: Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h. */
const systemCalls = {
  ioctl: { x64: 16, arm64: 29 },
  io_setup: { x64: 206, arm64: 0 },
  io_submit: { x64: 209, arm64: 2 },
  io_getevents: { x64: 208, arm64: 4 },
  name_to_handle_at: { x64: 303, arm64: 264 },
  openat2: { x64: 437, arm64: 437 },
  pidfd_open: { x64: 434, arm64: 434 },
  pidfd_send_signal: { x64: 424, arm64: 424 },
  prctl: { x64: 157, arm64: 167 },
  renameat2: { x64: 316, arm64: 276 },
  statx: { x64: 332, arm64: 291 },
} as const

/**
 * The number of a system call on this machine. Throws on architectures of Linux that holdfast does not know.
 * @internal
 */
export function systemCallNumber(name: keyof typeof systemCalls, machine: string = process.arch): number {
  if (machine === 'x64' || machine === 'arm64') return systemCalls[name][machine]
  throw new Error(`holdfast knows the system call numbers of x64 and arm64, not of ${machine}`)
}

/** Calls on a thread, or at once where atOnce() starts it. Resolves with the call's result. */
export async function callAsync(fn: LibcFunction, ...args: Argument[]): Promise<CallResult> {
  return isAtOnce() ? callNow(fn, ...args) : callOnThread(fn, ...args)
}

/** Calls on a thread, so that the event loop never waits for a disk. Resolves with the call's result. */
export async function callOnThread(fn: LibcFunction, ...args: Argument[]): Promise<CallResult> {
  const { queue } = libc()
  const bound = Lane.current ?? queue
  await bound.acquire()
  try {
    return await callWithoutLimit(fn, ...args)
  } finally {
    bound.leave()
  }
}

/** The same for a call that waits for as long as the process lives: it takes its thread from no lane. */
export function callWithoutLimit(fn: LibcFunction, ...args: Argument[]): Promise<CallResult> {
  return new Promise<CallResult>((resolve, reject) => {
    fn.bound.async(...fn.first, ...args, (error: Error | null, result: number) => {
      // Must stay the first statement: one microtask later koffi's errno is another call's.
      const errno = koffi.errno()
      if (error) reject(error)
      else resolve({ result, errno })
    })
  })
}

/** Calls at once, on this thread: only for calls that cannot wait for a disk. */
export function callNow(fn: LibcFunction, ...args: Argument[]): CallResult {
  const result = fn.bound(...fn.first, ...args)
  return { result, errno: koffi.errno() }
}

/** Native memory that the kernel may read and write for as long as the process lives, with its address. */
export function allocate(bytes: number): { address: bigint; view: DataView } {
  const pointer: unknown = koffi.alloc('uint8_t', bytes)
  const view = new DataView(koffi.view(pointer, bytes))
  return { address: koffi.address(pointer), view }
}
