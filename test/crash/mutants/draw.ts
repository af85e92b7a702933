import { parseArgs } from 'node:util'
import { randomFrom } from '../../seed.js'
import { ownTest } from '../../tested.js'
import { battery, hashOf, type Item } from './battery.js'
import { Bench, Refused } from './bench.js'
import { equivalents } from './equivalents.js'
import { type Mutant, readSources, type Source } from './mutants.js'
import { readResults } from './results.js'
import { countsOf, score, survivors } from './summary.js'

/*
 * Draws claims of the table, `this test kills this mutant`, and tries them, as many as fit into some seconds. A claim whose test lets
 * the mutant live is moved to another test that kills it; a mutant that nothing kills fails the run, unless the test, or what it kills, has
 * changed since the answer was given: that is said, and the next `npm run test:mutants` asks again.
 *
 *   --seed N       the same seed draws the same claims, in the same order
 *   --seconds N    for all of it
 *   --lanes N      so many at a time
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '40' },
    lanes: { type: 'string', default: '2' },
  },
})

interface Claim {
  readonly source: Source
  readonly mutant: Mutant
  readonly killer: Item
}

const sources = readSources()
const results = readResults()
const items = new Map(battery().map((item) => [item.name, item]))
const ids = new Set(sources.flatMap(({ mutants }) => mutants.map(({ id }) => id)))
const gone = equivalents.flatMap(({ mutants }) => mutants).filter((id) => !ids.has(id))
const claims = sources.flatMap((source) =>
  source.mutants.flatMap((mutant): Claim[] => {
    const result = results.get(mutant.id)
    const killer = result?.verdict === 'killed' ? items.get(result.by) : undefined
    return killer ? [{ source, mutant, killer }] : []
  }),
)

function shuffled<T>(all: readonly T[], random: () => number): T[] {
  return all
    .map((one) => ({ one, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ one }) => one)
}

console.log(`seed ${values.seed} (replay with --seed ${values.seed})`)
const end = performance.now() + 1000 * Number(values.seconds)
const drawn = shuffled(claims, randomFrom(Number(values.seed))).values()
const wrong: string[] = []
const moved: string[] = []
const outdated: string[] = []
let tried = 0
const refused = new Refused()
/** What a test may take here. */
const secondsAtMost = 14
/** What may be spent on another killer of one mutant. */
const secondsForOthers = 60

/** The test of the same name, then whatever kills in the same file, what kills most of it first. */
function othersFor({ file }: Mutant, missed: Item): Item[] {
  const kills = new Map<string, number>([[ownTest(file), Infinity]])
  for (const { mutant, killer } of claims)
    if (mutant.file === file) kills.set(killer.name, (kills.get(killer.name) ?? 0) + 1)
  return [...kills]
    .sort(([, a], [, b]) => b - a)
    .flatMap(([name]) => items.get(name) ?? [])
    .filter((item) => item !== missed)
}

/** Whether the answer was given for the mutant and the test as they are. */
function isFresh({ mutant, killer }: Claim): boolean {
  return results.get(mutant.id)?.hash === hashOf(mutant.context, killer.hash)
}

/** Another test that kills it, twice. */
async function anotherKiller(bench: Bench, { source, mutant, killer }: Claim): Promise<string | undefined> {
  const end = performance.now() + 1000 * secondsForOthers
  for (const item of othersFor(mutant, killer)) {
    if (performance.now() > end) return undefined
    if ((await bench.confirm(source, mutant, [item], () => secondsAtMost)).verdict === 'killed') return item.name
  }
  return undefined
}

async function lane(): Promise<void> {
  const bench = new Bench(refused)
  try {
    for (const claim of drawn) {
      const { source, mutant, killer } = claim
      const kills = async (): Promise<boolean> =>
        (await bench.try(source, mutant, [killer], () => secondsAtMost)).verdict === 'killed'
      // A second time: what draws at random, or counts on the time, may miss it once.
      if (!((await kills()) || (await kills()))) {
        const other = await anotherKiller(bench, claim)
        const line = `${mutant.file}:${mutant.line}: ${mutant.id}: ${killer.name} no longer kills it`
        if (other === undefined) (isFresh(claim) ? wrong : outdated).push(line)
        else moved.push(`moved: ${line}, ${other} does`)
      }
      tried += 1
      if (performance.now() > end) return
    }
  } finally {
    bench.remove()
  }
}

await Promise.all(Array.from({ length: Number(values.lanes) }, lane))
for (const line of moved) console.log(line)
for (const line of outdated) console.log(`outdated: ${line}; npm run test:mutants asks again`)
for (const line of wrong) console.error(`${line}; npm run test:mutants finds out what does`)
for (const name of refused.alone) console.error(`${name} fails without a mutant`)
// It counts for nothing, and goes with the next change of the table.
for (const id of gone) console.log(`equivalents.ts names a mutant that is gone: ${id}`)
for (const line of survivors(sources, results)) console.log(line)
const counts = countsOf(sources, results)
console.log(
  `${tried} of ${claims.length} claims tried, ${moved.length} moved, ${outdated.length} outdated, ${wrong.length} wrong; ${counts.mutants} mutants: ${counts.killed} killed, ` +
    `${counts.survived} survived, ${counts.unjudged} hang or break, ${counts.equivalent} equivalent, ` +
    `${counts.untried} untried; score ${score(counts)}`,
)
process.exitCode = wrong.length + refused.alone.size > 0 ? 1 : 0
