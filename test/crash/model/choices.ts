import type { Random } from '../../random.js'

/**
 * Decides, step by step, which unsynced changes a power cut left: a number below `options`. 0 is always the newest state, the last one the
 * state of the last sync.
 */
export type Choose = (options: number) => number

/**
 * Runs `visit` with every row of choices, depth first, where there are at most `limit` of them; else with the two extremes
 * and rows drawn at random up to `limit`. Tells whether it was every one.
 */
export function eachChoice(limit: number, random: Random, visit: (choose: Choose) => void): boolean {
  const newest = rowOf(visit)
  // The first choices decide which later ones there are, so this only tells whether a try is worth it.
  if (newest.reduce((product, options) => product * options, 1) <= limit) {
    if (everyRow(limit, visit)) return true
  }
  visit((options) => options - 1)
  for (let count = 2; count < limit; count++) visit(drawn(random, newest.length))
  return false
}

/** Visits the newest state, and tells the options that there were. */
function rowOf(visit: (choose: Choose) => void): number[] {
  const row: number[] = []
  visit((options) => {
    row.push(options)
    return 0
  })
  return row
}

/** Every row; false when there are too many. */
function everyRow(limit: number, visit: (choose: Choose) => void): boolean {
  const row: { taken: number; options: number }[] = []
  for (let count = 0; count < limit; count++) {
    let depth = 0
    const choose: Choose = (options) => {
      const step = (row[depth] ??= { taken: 0, options })
      depth += 1
      return step.taken
    }
    visit(choose)
    while (row.length > 0 && isLast(row[row.length - 1])) row.pop()
    const last = row[row.length - 1]
    if (!last) return true
    last.taken += 1
  }
  return false
}

/** A row of some kind: one step was lost, one alone got to the disk, or nearly all, half, nearly nothing did. */
function drawn(random: Random, steps: number): Choose {
  const one = random.below(Math.max(steps, 1))
  const kind = random.below(4)
  const share = random.pick([0.05, 0.3, 0.5, 0.7, 0.95])
  let step = 0
  return (options) => {
    const odd = step++ === one
    const newest = kind === 0 ? !odd : kind === 1 ? odd : random.next() < share
    if (newest) return 0
    return random.next() < 0.5 ? options - 1 : 1 + random.below(options - 1)
  }
}

function isLast(step: { taken: number; options: number } | undefined): boolean {
  return step !== undefined && step.taken === step.options - 1
}
