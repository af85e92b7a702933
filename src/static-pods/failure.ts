import { messageOf, type DeclaredInvalid as DeclaredInvalid } from '../errors.js'
import { DurableWriteError, extendError, isAborted } from '../durable/errors.js'

/** A static-pod command failed: the message says what failed, on which object or path, and what to do. It shows no secret. */
export class StaticPodError extends Error {
  override readonly name: string = 'StaticPodError'
}

/** A newer installer is at work on this node: this one gives way, and has written nothing. */
export class Superseded extends StaticPodError {
  override readonly name = 'Superseded'
}

/** The arguments can be right on no node: the command started nothing. */
export class InvalidInput extends StaticPodError implements DeclaredInvalid {
  override readonly name = 'InvalidInput'
  readonly invalid = 'argument'
}

/** The same failure, with what else the caller knows of the disk: sentences without their full stops. */
export function withState(error: unknown, state: readonly string[]): unknown {
  if (state.length === 0) return error
  if (!(error instanceof DurableWriteError)) {
    return new StaticPodError([messageOf(error), ...state].join('; '), { cause: error })
  }
  return extendError(error, state)
}

/** The failure that the deadline caused, and names it; what the error says of the disk stays. */
export function late(error: unknown, milliseconds: number): unknown {
  if (error instanceof Superseded) return error
  if (error instanceof DurableWriteError && !isAborted(error)) return error
  return new StaticPodError(
    `the installation was not done within ${milliseconds / 1000} s (--timeout-duration): ${messageOf(error)}`,
    { cause: error },
  )
}
