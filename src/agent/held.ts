import { describeOrders } from '../durable/index.js'
import type { Hold } from '../durable/types.js'
import type { Log } from '../log.js'
import type { Reason } from '../reasons.js'
import type { ConditionState } from './directory-state.js'

/* The conditions of a directory that an operator holds, while the source has nothing newer: the agent refused nothing. */

export function heldCondition(directory: string, hold: Hold): ConditionState {
  return { status: 'True', reason: 'Held', message: `${described(directory, hold)}; nothing newer is known` }
}

export function heldEvents(directory: string, hold: Hold | undefined) {
  if (hold === undefined) return []
  return [{ on: 'node', reason: 'Held', message: described(directory, hold) } as const]
}

function described(directory: string, hold: Hold): string {
  return describeOrders(directory, { hold }).join('; ')
}

/** Another program publishes just now, a person wants it so, or the content is at fault: the disk is fine. */
export const levels: Partial<Record<Reason, keyof Log>> = {
  Busy: 'info',
  Held: 'warn',
  RolledBack: 'warn',
  AdoptionPending: 'warn',
  AdoptionRefused: 'warn',
  ContentRejected: 'warn',
}
