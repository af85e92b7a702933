import { constants, promises as fsp, type BigIntStats } from 'node:fs'
import { freshFor, isWholeSecond, outlast } from './change-times.js'
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

/** Another program wrote to the file while it was read: its content may be torn. */
class ChangedFileError extends UnfitFileError {
  constructor(path: string) {
    super(path, 'was changed by another program while holdfast read it')
  }
}

/**
 * The bytes of a regular file of at most `limit` bytes. `steady`: refuses one that changes meanwhile. `follow`: also through a symbolic
 * link in the path's last part. A pipe in the file's place blocks no caller.
 * @throws UnfitFileError
 * @throws the errno of open(2), fstat(2) or read(2); ELOOP for a link that is not followed
 */
export async function readRegularFile(
  path: string,
  limit: number,
  { follow = true, steady = false } = {},
): Promise<Buffer> {
  const file = await fsp.open(path, O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW))
  try {
    const status = await file.stat({ bigint: true })
    if (!status.isFile()) throw new UnfitFileError(path, 'is not a regular file')
    if (status.size > limit) throw new UnfitFileError(path, `is larger than ${limit} bytes`)
    if (steady) await outlast(status.ctimeNs, Date.now())
    const bytes = await file.readFile()
    if (steady && fingerprintOf(await file.stat({ bigint: true })) !== fingerprintOf(status))
      throw new ChangedFileError(path)
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
    return fingerprintOf(await fsp.stat(path, { bigint: true }))
  } catch (error) {
    return codeOf(error) ?? 'unknown'
  }
}

/** The fingerprint of a file by its status. As long as another change may leave it the same, no two are equal. */
export function fingerprintOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  const isOpen = isWholeSecond(ctimeNs) && freshFor(ctimeNs, Date.now()) > 0
  return [dev, ino, size, mtimeNs, ctimeNs, ...(isOpen ? [process.hrtime.bigint()] : [])].join(':')
}
