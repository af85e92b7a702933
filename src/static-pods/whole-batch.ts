import type { DurableWriteError } from '../durable/errors.js'
import type { ReplaceResult } from '../durable/types.js'
import { listed, withState } from './failure.js'

/**
 * The results of a batch in which nothing failed.
 * @throws DurableWriteError of the gravest failure, unknown durability before all others, with what became of the rest
 */
export function wholeBatch(outcomes: readonly (ReplaceResult | { error: DurableWriteError })[]): ReplaceResult[] {
  const errors = outcomes.flatMap((outcome) => ('error' in outcome ? [outcome.error] : []))
  const done = outcomes.flatMap((outcome) => ('error' in outcome ? [] : [outcome]))
  const gravest = errors.find(({ published }) => published) ?? errors[0]
  if (gravest === undefined) return done
  const others = errors.filter((error) => error !== gravest).map(({ path }) => path)
  const changed = done.filter(({ outcome }) => outcome !== 'unchanged').map(({ path }) => path)
  throw withState(gravest, [
    ...(others.length > 0 ? [`failed too: ${listed(others)}`] : []),
    ...(changed.length > 0 ? [`published all the same: ${listed(changed)}`] : []),
  ])
}
