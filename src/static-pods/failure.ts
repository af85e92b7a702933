import { messageOf, type InvalidInput as DeclaredInvalid } from '../errors.js'
import { DurableWriteError, extendError } from '../durable/errors.js'

/** What was asked for could not be done; the message says what, on which object or path, and what to do. No secret is in it. */
export class StaticPodError extends Error {
  override readonly name: string = 'StaticPodError'
}

/** A newer installer is at work on this node: this one gives way, and has written nothing. */
export class Superseded extends StaticPodError {
  override readonly name = 'Superseded'
}

/** What was given cannot be right whatever the state of the node: nothing was started. */
export class InvalidInput extends StaticPodError implements DeclaredInvalid {
  override readonly name = 'InvalidInput'
  readonly invalid = 'argument'
}

/** The same failure, with what else is known of the disk: sentences without their full stops. */
export function withState(error: unknown, state: readonly string[]): unknown {
  if (state.length === 0) return error
  if (!(error instanceof DurableWriteError)) {
    return new StaticPodError([messageOf(error), ...state].join('; '), { cause: error })
  }
  return extendError(error, state)
}

/** The failure of what the deadline cut short, which says so; what it says of the disk stays. */
export function late(error: unknown, milliseconds: number): unknown {
  if (error instanceof Superseded) return error
  if (error instanceof DurableWriteError && error.code !== 'ECANCELED') return error
  return new StaticPodError(
    `the installation was not done within ${milliseconds / 1000} s (--timeout-duration): ${messageOf(error)}`,
    { cause: error },
  )
}
