import { declare, type LibcFunction } from './libc.js'

let trim: LibcFunction['bound'] | null | undefined

/**
 * Gives the pages that were freed back to the system, those in the middle of the heap included. glibc keeps them where a small block
 * above them is in use, and after one large block was freed all those of its size. Nothing where libc has no malloc_trim (musl).
 */
export function returnFreedMemory(): void {
  trim ??= find()
  trim?.(0)
}

function find(): LibcFunction['bound'] | null {
  try {
    return declare('malloc_trim', 'int', ['size_t']).bound
  } catch {
    return null
  }
}
