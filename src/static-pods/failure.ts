/** What was asked for could not be done; the message says what, on which object or path, and what to do. No secret is in it. */
export class StaticPodError extends Error {
  override readonly name: string = 'StaticPodError'
}

/** A newer installer is at work on this node: this one gives way, and has written nothing. */
export class Superseded extends StaticPodError {
  override readonly name = 'Superseded'
}

/** What was given cannot be right whatever the state of the node: nothing was begun. */
export class InvalidInput extends StaticPodError {
  override readonly name = 'InvalidInput'
}

/** The sentence of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
