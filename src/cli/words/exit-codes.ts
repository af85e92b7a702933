import { invalidInputOf, isPublicationError, type DeclaredInvalid } from '../../errors.js'

/** The exit codes; scripts rely on their meanings. */
export const exitCodes = {
  done: 0,
  /** At least one target is not as asked; none that failed was changed. */
  failed: 1,
  /** Wrong usage or configuration; nothing was started. */
  usage: 2,
  /** Published, but whether it survives a power cut is unknown. Wins over `failed`. */
  durabilityUnknown: 3,
  /** `verify` or `diff` found a difference, `check` an obstacle, `torture` that the disk lost acknowledged data. */
  fault: 4,
  /** Another process holds the lock. */
  busy: 75,
} as const

const afterSignal = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

export type EndingSignal = keyof typeof afterSignal

/** 128 + N for a command that a signal ended. */
export function exitCodeAfter(signal: EndingSignal): number {
  return afterSignal[signal]
}

/** Wrong usage, found after the arguments were parsed: exit 2, with the message alone. */
export class UsageError extends Error implements DeclaredInvalid {
  override readonly name = 'UsageError'
  readonly invalid = 'argument'
}

/** A check forbids this publication: the target stays as it was, exit 1. */
export class NotPublished extends Error {
  override readonly name = 'NotPublished'
  readonly published = false
  constructor(
    problem: string,
    readonly path: string,
    state = `holdfast left ${path} as it was`,
  ) {
    super(`${problem}; ${state}`)
  }
}

/** The command has printed everything; only its exit code remains. */
export class Exit extends Error {
  override readonly name = 'Exit'
  constructor(readonly exitCode: number) {
    super(`exit ${exitCode}`)
  }
}

/** The one place that turns an error into an exit code. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Exit) return error.exitCode
  if (invalidInputOf(error) !== undefined) return exitCodes.usage
  if (isPublicationError(error)) {
    if (error.published) return exitCodes.durabilityUnknown
    return error.reason === 'Busy' ? exitCodes.busy : exitCodes.failed
  }
  return exitCodes.failed
}

/** The exit code of several targets: unknown durability wins, then a failure, then a wrong configuration, then a busy lock. */
export function exitCodeOfAll(errors: readonly unknown[]): number {
  const codes = errors.map(exitCodeOf)
  const order = [exitCodes.durabilityUnknown, exitCodes.failed, exitCodes.usage, exitCodes.busy]
  return order.find((code) => codes.includes(code)) ?? exitCodes.done
}
