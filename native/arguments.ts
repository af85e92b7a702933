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
