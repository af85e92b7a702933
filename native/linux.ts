import { loadKoffi } from './load-koffi.js'

/* holdfast calls the kernel: other systems may install it, and learn at the first call that it does not run there. */

/** @throws Error on any other system */
export function requireLinux(): void {
  if (process.platform !== 'linux') throw new Error(`holdfast runs on Linux, and this is ${process.platform}`)
}

/** Resolves once libc can be called; a caller of the library may be the first who needs it. @throws Error on any other system */
export async function ready(): Promise<void> {
  requireLinux()
  await loadKoffi()
}
