import type { Reason } from '../../reasons.js'

/** A file, or the directory, cannot be used as it is now. The message begins with the place and holds no value. */
export class FileFault extends Error {
  override readonly name = 'FileFault'
  constructor(
    message: string,
    readonly reason: Reason = 'ObjectInvalid',
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** For an errno: what was denied is told apart from what is not there. */
export function fileFault(place: string, error: unknown): FileFault {
  const code = errnoOf(error)
  const denied = code === 'EACCES' || code === 'EPERM'
  return new FileFault(
    `${place}: cannot be read: ${code ?? 'unknown error'}`,
    denied ? 'AccessDenied' : 'SourceUnavailable',
    { cause: error },
  )
}

export function errnoOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
