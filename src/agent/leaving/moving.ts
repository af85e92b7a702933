import type { RelocationProgress } from '../../durable/move/index.js'
import type { RelocationState } from '../../durable/types.js'
import type { Log } from '../../log.js'
import type { Reason } from '../../reasons.js'
import type { ConditionState } from '../conditions.js'

/* What the agent says of the old path of a directory that has moved. */

/** The result of one pass over it: its state, and its publication, if there was one. */
export interface Moving extends RelocationProgress {
  readonly kind: 'moving'
  /** The new path. */
  readonly to: string
}

interface About {
  readonly directory: string
  readonly intact: boolean
}

interface MovingLine {
  readonly level: keyof Log
  readonly reason?: Reason
  readonly message: string
  readonly fields?: object
}

/** The news of each state, for people. */
const entered = {
  staged: 'is to move',
  both: 'moves, and is kept up to date until nobody uses it',
  draining: 'is not used any more, and goes',
  done: 'has moved, and is not there',
} as const satisfies Record<RelocationState, string>

function reasonFor(state: RelocationState | undefined): Reason {
  return state === 'done' ? 'Relocated' : 'Relocating'
}

export function movingMeaning(outcome: Moving, about: About) {
  return {
    condition: movingCondition(outcome, about),
    lines: movingLines(outcome, about),
    events: movingEvents(outcome, about),
    result: outcome.result?.outcome,
    queue: 'done' as const,
  }
}

export function movingCondition({ to, state, waits }: Moving, { directory, intact }: About): ConditionState {
  const rest = `${state === undefined ? '' : ` (${state})`}${waits === undefined ? '' : `: ${waits}`}`
  const isDone = state === 'done'
  const message = isDone ? `${directory} has moved to ${to}, and is not there` : `${directory} moves to ${to}${rest}`
  return { status: intact || isDone ? 'True' : 'False', reason: reasonFor(state), message }
}

function movingLines({ to, state, entered: now, result, waits }: Moving, { directory }: About): MovingLine[] {
  const reason = reasonFor(state)
  const rest = waits === undefined ? '' : `; ${waits}`
  const fields = { to, state }
  if (now !== undefined)
    return [{ level: 'info', reason, message: `${directory} ${entered[now]} (to ${to})${rest}`, fields }]
  if (result === undefined || result.outcome === 'unchanged')
    return [{ level: 'debug', message: `${directory} moves to ${to}${rest}`, fields }]
  return [{ level: 'info', reason: 'Published', message: `${directory} holds what ${to} holds${rest}`, fields }]
}

function movingEvents({ to, state, entered: now }: Moving, { directory }: About) {
  if (now === undefined) return []
  return [{ on: 'node', reason: reasonFor(state), message: `${directory} ${entered[now]} (to ${to})` } as const]
}
