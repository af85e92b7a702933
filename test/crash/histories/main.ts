/**
 * Generated histories: an unsynced past of a target and of what is around it, a publication, a power cut, the next run; and then all
 * that is promised. Histories are drawn from a seed; one that breaks a promise is shrunk, and printed with how to play it again.
 *
 *     node dist/test/crash/histories/main.js [OPTIONS]
 *
 *   --seed N          the first seed; each history has the next one
 *   --states N        ends when so many disks have been judged
 *   --seconds N       ends then, too
 *   --history JSON    plays this one, from --seed
 *   --impatient       stops at the first that breaks something
 */
import { parseArgs } from 'node:util'
import { Random } from '../model/choices.js'
import { type Effort, exploreOnModel } from './explore-model.js'
import { generate, type History, shrink } from './generate.js'
import { described } from './operations.js'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    states: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '100000' },
    history: { type: 'string' },
    impatient: { type: 'boolean', default: false },
  },
})
const effort: Effort = { instants: 12, states: 4, after: 6, recovered: 8 }
const began = performance.now()
const seconds = (): number => (performance.now() - began) / 1000

const total = { histories: 0, states: 0, broken: 0 }
const outcomes = new Map<string, number>()

for (
  let seed = Number(values.seed);
  total.states < Number(values.states) && seconds() < Number(values.seconds);
  seed++
) {
  const history =
    values.history === undefined ? generate(new Random(seed), 'model') : (JSON.parse(values.history) as History)
  const explored = await exploreOnModel(history, seed, effort)
  total.histories += 1
  total.states += explored.states
  for (const outcome of explored.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  if (explored.faults.length > 0) {
    total.broken += 1
    const shortest = await shrink(
      history,
      async (candidate) => (await exploreOnModel(candidate, seed, effort)).faults.length > 0,
    )
    const [fault] = (await exploreOnModel(shortest, seed, effort)).faults
    console.error(`VIOLATION model, seed ${seed}: ${fault ?? ''}\n  ${shortest.map(described).join('\n  ')}`)
    console.error(`  play it again: --seed ${seed} --history '${JSON.stringify(shortest)}'`)
    if (values.impatient) break
  }
  if (values.history !== undefined) break
}
console.log(JSON.stringify({ ...total, ...Object.fromEntries(outcomes), seconds: Math.round(seconds()) }))
process.exitCode = total.broken > 0 ? 1 : 0
