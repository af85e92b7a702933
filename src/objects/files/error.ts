import { codeOf, describeCode } from '../../errors.js'
import type { Reason } from '../../reasons.js'

/** A file, or the directory, cannot be used as it is now. The message starts with the place and holds no value. */
export class FileError extends Error {
  override readonly name = 'FileError'
  constructor(
    message: string,
    readonly reason: Reason = 'ObjectInvalid',
    options?: ErrorOptions,
    /** The path is wrong, or not ours to read: waiting alone does not mend that. */
    readonly permanent: boolean = false,
  ) {
    super(message, options)
  }
}

/** For an errno: a denial differs from a missing file. */
export function fileError(place: string, error: unknown): FileError {
  const code = codeOf(error)
  const denied = code === 'EACCES' || code === 'EPERM'
  return new FileError(
    `${place}: could not be read: ${code === undefined ? 'unknown error' : describeCode(code)}`,
    denied ? 'AccessDenied' : 'SourceUnavailable',
    { cause: error },
    denied || code === 'ENOENT' || code === 'ENOTDIR',
  )
}
