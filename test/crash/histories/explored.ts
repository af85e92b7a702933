/** The findings about a history. */
import type { Random } from '../../random.js'
import { faultOfRepeat } from '../judge/answers.js'
import { nextContent } from './contents.js'
import { Knowledge } from './knowledge.js'
import { type Answer, mayLeadElsewhere } from './judge.js'
import { type Allowed, faultAfterCut } from './judge-cut.js'
import type { Publication } from './operations.js'
import { type Ground, playCall } from './play.js'
import type { Snapshot } from './snapshot.js'

export interface Explored {
  /** Disks as a power cut left them: each was judged. */
  states: number
  /** What the program answered, for the statistics: a program that refuses everything breaks nothing. */
  readonly outcomes: string[]
  /** The faults; the first is enough. */
  readonly faults: string[]
}

export function nothingYet(): Explored {
  return { states: 0, outcomes: [], faults: [] }
}

export function countOutcomes({ outcomes }: Explored, answer: Answer): void {
  for (const outcome of answer.outcomes) outcomes.push('error' in outcome ? outcome.error.reason : outcome.outcome)
}

/** A disk as a power cut left it. */
export function judgeCut(
  explored: Explored,
  snapshot: Snapshot,
  knowledge: Knowledge,
  allowed: readonly Allowed[],
): void {
  explored.states += 1
  const faults = [...allowed.map((one) => faultAfterCut(snapshot, one)), knowledge.lostBystander(snapshot)]
  explored.faults.push(...faults.filter((fault) => fault !== undefined))
}

/**
 * The next run after a power cut, of the same content or of another, and the one after that: their answers are true, and the second has
 * nothing to do.
 */
export async function recover(
  ground: Ground,
  { targets, careful, content }: Publication,
  random: Random,
  explored: Explored,
): Promise<Knowledge> {
  const next: Publication = { do: 'publish', targets, careful, content: nextContent(random, content) }
  const knowledge = new Knowledge()
  knowledge.durable(ground.look())
  if (mayLeadElsewhere(next, ground.look())) return knowledge
  const first = await playCall(ground, knowledge, next)
  countOutcomes(explored, first.answer)
  explored.faults.push(...first.faults.map((fault) => `the next run: ${fault}`))
  const again = await playCall(ground, knowledge, next)
  explored.faults.push(...again.faults.map((fault) => `the run after the next: ${fault}`))
  next.targets.forEach((target, index) => {
    const [one, two] = [first.answer.outcomes[index], again.answer.outcomes[index]]
    if (!one || !two || 'error' in one) return
    // A person has to act first, if only by another call.
    if (one.outcome === 'waits') return
    // A second rollback goes back to what the first one has replaced.
    if (next.content === 'earlier') return
    if (next.content === 'none' && 'error' in two && two.error.reason === 'TargetUnfit') return
    const fault = faultOfRepeat(target, two)
    if (fault !== undefined) explored.faults.push(fault)
  })
  return knowledge
}
