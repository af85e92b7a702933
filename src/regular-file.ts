import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { codeOf } from './errors.js'

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants

/** The path leads to something that is not read: no regular file, or too large. The message starts with the path. */
export class UnfitFileError extends Error {
  override readonly name = 'UnfitFileError'
  constructor(
    path: string,
    /** Without the path: `is not a regular file`. */
    readonly problem: string,
  ) {
    super(`${path} ${problem}`)
  }
}

/**
 * The bytes of a regular file of at most `limit` bytes. `follow`: also through a symbolic link in the path's last part. A pipe that
 * took the file's place does not hold anybody up.
 * @throws UnfitFileError
 * @throws the errno of open(2), fstat(2) or read(2); ELOOP for a link that is not followed
 */
export async function readRegularFile(path: string, limit: number, { follow = true } = {}): Promise<Buffer> {
  const file = await open(path, O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW))
  try {
    const status = await file.stat()
    if (!status.isFile()) throw new UnfitFileError(path, 'is not a regular file')
    if (status.size > limit) throw new UnfitFileError(path, `is larger than ${limit} bytes`)
    const bytes = await file.readFile()
    // It has grown meanwhile.
    if (bytes.length > limit) throw new UnfitFileError(path, `is larger than ${limit} bytes`)
    return bytes
  } finally {
    await file.close()
  }
}

/** Differs where a file has been replaced or written since, without reading it. */
export async function fingerprint(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  } catch (error) {
    return codeOf(error) ?? 'unknown'
  }
}
