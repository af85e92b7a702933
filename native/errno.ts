import { constants } from 'node:os'

const names = new Map<number, string>()
// Linux has two names for one number (EWOULDBLOCK and EAGAIN, EOPNOTSUPP and ENOTSUP): Node lists that first which POSIX does.
for (const [name, number] of Object.entries(constants.errno)) {
  if (!names.has(number)) names.set(number, name)
}

/** The symbolic name of an errno: `ENOSPC` for 28; `E4711` where Node knows no name for it. */
export function errnoName(errno: number): string {
  return names.get(errno) ?? `E${errno}`
}

/** A system call failed. `path` is the one that it was given, or what its descriptor stands for, where known. */
export class SystemError extends Error {
  override readonly name = 'SystemError'
  readonly code: string

  constructor(
    readonly syscall: string,
    readonly errno: number,
    readonly path: string | undefined,
    options?: ErrorOptions,
  ) {
    const code = errnoName(errno)
    super(`${syscall}${path === undefined ? '' : ` ${path}`}: ${code}`, options)
    this.code = code
  }
}
