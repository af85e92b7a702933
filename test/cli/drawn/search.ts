/** Plays many drawn lives side by side, until one goes wrong. */
import { inParallel } from '../../../src/parallel.js'
import { messageOf } from '../../../src/errors.js'
import { drawSteps, shorter, type Step } from './draw.js'
import { Played } from './play.js'

interface Found {
  readonly seed: number
  readonly why: string
  readonly steps: readonly Step[]
  readonly logs: string
}

interface SearchOptions {
  readonly seeds: readonly number[]
  readonly lanes: number
  /** Milliseconds after which none begins any more. */
  readonly limit: number
  /** Whether to look for a shorter trail of what goes wrong: it takes minutes. */
  readonly shortens?: boolean
  /** Words before the program, which then sees all processes. */
  readonly prefix: readonly string[]
}

/** Milliseconds in which shorter lives may begin: a broken one takes as long as its wait. */
const patience = 180_000

/** How many were played, and what went wrong. */
export async function search({
  seeds,
  lanes,
  limit,
  prefix,
  shortens = false,
}: SearchOptions): Promise<{ played: number; found: Found[] }> {
  const started = performance.now()
  const found: Found[] = []
  let played = 0
  await inParallel(seeds, lanes, async (seed) => {
    if (found.length > 0 || performance.now() - started > limit) return
    const wrong = await tryOne(seed, drawSteps(seed), prefix)
    played += 1
    if (wrong) found.push(wrong)
  })
  const [first] = found
  if (first === undefined || !shortens) return { played, found }
  return { played, found: [await shorten(first, lanes, prefix)] }
}

async function tryOne(seed: number, steps: readonly Step[], prefix: readonly string[]): Promise<Found | undefined> {
  const life = new Played(prefix)
  try {
    await life.play(steps)
    return undefined
  } catch (error) {
    return { seed, why: messageOf(error), steps, logs: life.logs() }
  } finally {
    await life.close()
  }
}

async function shorten(found: Found, lanes: number, prefix: readonly string[]): Promise<Found> {
  const started = performance.now()
  let least = found
  for (;;) {
    const candidates = shorter(least.steps)
    let next: Found | undefined
    await inParallel(candidates, lanes, async (steps) => {
      if (next !== undefined || performance.now() - started > patience) return
      next ??= await tryOne(found.seed, steps, prefix)
    })
    if (next === undefined) return least
    least = next
  }
}

/** The trail, a step a line. */
export function describe({ seed, why, steps, logs }: Found): string {
  const trail = steps.map((step, index) => `${index + 1}. ${JSON.stringify(step)}`)
  return [`HOLDFAST_SEED=${seed} replays this: ${why}`, ...trail, logs].join('\n')
}
