import type { Descriptor, FileSystem } from './file-system.js'

/** A whole file, copied piece by piece: the file system uses its buffer again. `size`: its bytes, where they are known. */
export async function readWhole(fs: FileSystem, file: Descriptor, size?: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of fs.read(file, size)) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}
