import { parseArgs } from 'node:util'
import { type Counts, Broken, Explorer } from './explorer.js'
import { type Effort, exploreKills, explorePowerCuts } from './explore.js'
import { exploreFaults } from './faults.js'
import { exploreForeigners } from './foreigners.js'
import { exploreTakenOut } from './taken-out.js'
import { exploreChains } from './chains.js'
import { type Scenario, withoutTargets } from './scenario.js'
import { scenarios } from './scenarios.js'
import { exploreMeetings, explorePowerCutsOf } from './static-pods/explore.js'
import { podStories, stories } from './static-pods/stories.js'

/*
 * The model suite as a program: explores the core that lies beside it, prints its counts as one line of JSON, and each fault with the way
 * there. Exit 1 at any fault.
 *
 *   --seed N        the same seed draws the same states
 *   --effort NAME   brief (for the matrix of mutations), quick (for those that it must catch), normal, long
 *   --impatient     stop at the first thing that is wrong
 *   --only TEXT     scenarios whose name holds this
 *   --except TEXT   scenarios whose name does not hold this
 *   --phase TEXT    ways to explore whose name holds this
 */

const efforts: Record<string, Effort> = {
  brief: { states: 4, fewer: 2, second: 400, chains: 4 },
  quick: { states: 10, fewer: 5, second: 60, chains: 10 },
  normal: { states: 16, fewer: 6, second: 60, chains: 30 },
  long: { states: 1000, fewer: 24, second: 6, chains: 5000 },
}

const phases = [
  ['power cut', explorePowerCuts],
  ['kill, successor, power cut', exploreKills],
  ['fault', exploreFaults],
  ['foreign program', exploreForeigners],
  ['taken out', exploreTakenOut],
  ['chain', exploreChains],
] as const

interface Exploration {
  readonly scenario: Scenario
  readonly phase: string
  readonly explore: (explorer: Explorer, effort: Effort) => Promise<void>
}

const explorations: readonly Exploration[] = [
  ...scenarios.flatMap((scenario) => phases.map(([phase, explore]) => ({ scenario, phase, explore }))),
  ...stories.map((story) => ({
    scenario: withoutTargets(story.name),
    phase: 'power cut',
    explore: (explorer: Explorer, effort: Effort) => explorePowerCutsOf(explorer, story, effort),
  })),
  ...podStories.map((story) => ({
    scenario: withoutTargets(story.name),
    phase: 'two processes',
    explore: (explorer: Explorer, effort: Effort) => exploreMeetings(explorer, story, effort),
  })),
]

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    effort: { type: 'string', default: 'normal' },
    impatient: { type: 'boolean', default: false },
    phase: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
    except: { type: 'string', default: '' },
  },
})
const effort = efforts[values.effort]
if (!effort) throw new Error(`--effort must be one of ${Object.keys(efforts).join(', ')}`)

const total: Counts = { states: 0, distinct: 0, plays: 0, faults: 0, exhausted: 0, instants: 0 }
const wrong: string[] = []
const began = performance.now()

/** A scenario of many targets has many times the instants: it is explored with less at each, and last. */
function effortFor(targets: number): Effort {
  if (!effort) throw new Error('unreachable')
  if (targets <= 2) return effort
  return {
    states: Math.ceil(effort.states / 4),
    fewer: Math.ceil(effort.fewer / 2),
    second: effort.second * 8,
    chains: Math.ceil(effort.chains / 4),
  }
}

try {
  for (const { scenario, phase, explore } of explorations) {
    if (!scenario.name.includes(values.only) || !phase.includes(values.phase)) continue
    if (values.except !== '' && scenario.name.includes(values.except)) continue
    const explorer = new Explorer(scenario, Number(values.seed), values.impatient)
    await explore(explorer, effortFor(scenario.targets.length))
    for (const key of Object.keys(total) as (keyof Counts)[]) total[key] += explorer.counts[key]
    for (const [fault, { times, trail }] of explorer.broken) {
      wrong.push(`${phase}: ${fault} (${times} times)\n  ${trail.join('\n  ')}`)
    }
  }
} catch (error) {
  if (!(error instanceof Broken)) throw error
  wrong.push(error.message)
}
for (const fault of wrong) console.error(fault)
console.log(JSON.stringify({ ...total, wrong: wrong.length, seconds: Math.round(performance.now() - began) / 1000 }))
process.exitCode = wrong.length > 0 ? 1 : 0
