/**
 * The content of the publications: every byte follows from the file's name and the generation, so that a file is of one generation or it is
 * broken.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Files = ReadonlyMap<string, Buffer>

export function filesOf(sizes: readonly number[], generation: number): Files {
  return new Map(
    sizes.map((bytes, index) => {
      const name = `file-${String(index).padStart(4, '0')}`
      const line = `${createHash('sha256').update(`${name} of ${generation}`).digest('hex')}\n`
      return [name, Buffer.alloc(bytes, line)]
    }),
  )
}

/** Lays the files into a directory that holds nothing else then. */
export function layOut(directory: string, files: Files): void {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  for (const [name, bytes] of files) writeFileSync(join(directory, name), bytes)
}
