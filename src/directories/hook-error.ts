import { codeOf } from '../errors.js'

/** A hook did not do its work. Messages hold no output, arguments, URL or file content of it: any of them may be secret. */
export class HookError extends Error {
  override readonly name = 'HookError'

  constructor(
    /** The hook's name in the configuration. */
    readonly hook: string,
    /** The message without it. */
    readonly detail: string,
    /** The hook could not even start as it should: that says nothing of the content or the service. */
    readonly inconclusive = false,
  ) {
    super(`${hook}: ${detail}`)
  }
}

/** errno name or Node's code of a failure; nothing else of it is fit to be shown. */
export function failureCode(error: unknown): string {
  return codeOf(error) ?? 'unknown'
}
