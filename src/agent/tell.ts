import type { Log } from '../log.js'
import { isSourceAway, type Attempt } from './attempt.js'
import { withoutPaths, type PublishedObject } from './directory-state.js'

type Published = Extract<Attempt, { kind: 'published' }>

/** What surrounded an attempt. Never content. */
export interface Circumstances {
  readonly operation: string
  readonly directory: string
  readonly causes: readonly string[]
  /** Milliseconds from the moment it was due until now. */
  readonly milliseconds: number
  /** What differed on the disk from what was published; undefined: nothing was found to. */
  readonly drift: string | undefined
  /** Objects that are published no more. */
  readonly removed: readonly PublishedObject[]
  /** Objects that are published in another version than before. */
  readonly changed: readonly PublishedObject[]
}

/** Writes the log's lines about one attempt: one, and one more for objects that went away. */
export function tell(log: Log, attempt: Attempt, circumstances: Circumstances): void {
  const { operation, directory, causes, milliseconds, drift, removed } = circumstances
  const fields = { operation, directory, causes, milliseconds: Math.round(milliseconds * 10) / 10 }
  switch (attempt.kind) {
    case 'waiting':
      log.debug(fields, `${directory}: ${attempt.message}`)
      break
    case 'abandoned':
      log.info(fields, `${operation}: given up before anything was visible`)
      break
    case 'incomplete': {
      const state = isSourceAway(attempt) ? 'what is published stays' : 'nothing was changed'
      for (const { reason, message } of attempt.findings) {
        log.warn({ reason, ...fields }, `${directory}: ${message}; ${state}`)
      }
      break
    }
    case 'failed': {
      const { reason, error, published } = attempt
      // Somebody else publishes here just now: it is tried again, and nobody has to do anything.
      const level = reason === 'Busy' ? 'info' : 'error'
      log[level]({ reason, ...fields, published, ...faultFields(error) }, error.message)
      break
    }
    case 'published': {
      const { outcome, digest, warnings } = attempt
      const repaired = drift !== undefined && outcome !== 'unchanged'
      const reason = outcome === 'unchanged' ? 'Unchanged' : repaired ? 'DriftRepaired' : 'Published'
      const details = { reason, ...fields, outcome, digest, objects: attempt.objects.map(withoutPaths) }
      log.info(details, sentence(directory, attempt, repaired ? drift : undefined))
      for (const { kind, namespace, name } of removed) {
        log.info({ reason: 'Removed', ...fields }, `${directory}: ${kind} ${namespace}/${name} is published no more`)
      }
      for (const warning of warnings) {
        log.warn({ reason: warning.reason, ...fields }, `${directory}: ${warning.message}`)
      }
    }
  }
}

/** What a publication came to, for people; `drift`: what it has repaired. Durable is said only of what is proven. */
export function sentence(
  directory: string,
  { outcome, unproven }: Pick<Published, 'outcome' | 'unproven'>,
  drift: string | undefined,
): string {
  if (drift !== undefined) return `${directory} is repaired: what differed on the disk: ${drift}`
  if (outcome === 'unchanged') return `${directory} holds this already${unproven ? '' : ', durably'}`
  return `${directory} is ${outcome}, whole ${unproven ? 'for its readers (durability is not proven here)' : 'and durable'}`
}

function faultFields(error: Error): object {
  const { code, syscall, path } = error as Partial<Record<'code' | 'syscall' | 'path', unknown>>
  return { code, syscall, path }
}
