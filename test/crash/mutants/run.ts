import { parseArgs } from 'node:util'
import { battery, hashOf } from './battery.js'
import { Bench, patienceFor, Refused } from './bench.js'
import { equivalents } from './equivalents.js'
import { namesIn } from './listed.js'
import { Hunt } from './hunt.js'
import { byName, type Mutant, readSources, type Source } from './mutants.js'
import { Reach } from './reach.js'
import { readResults, type Result, writeResults } from './results.js'
import { countsOf, score, writeSummary } from './summary.js'

/*
 * Every mutant that the operators make of the program, before the tests that come by it. `dist` keeps the results: an aborted run goes on.
 * Once every mutant has an answer, writes the score to docs/mutation-score.md. Fails where a test kills a mutant that is listed as
 * equivalent or as a survivor, or none kills another one.
 *
 *   --only TEXT    mutants whose name, or whose file's path, holds this, or this of several
 *   --limit N      no test that takes longer than so many seconds
 *   --first N      of the tests for each mutant, so many
 *   --heavy        the long tests, too
 *   --no-model     the tests alone
 *   --without TEXT not the tests whose name holds this
 *   --tests TEXT   only the tests whose name holds this, or this of several, and those mutants that others have let live: no other
 *                  test is measured, and what these let live, too, keeps the answer that it has
 *   --lanes N      so many at a time
 *   --known        only those that have been tried before
 *   --untried      only those that have not
 *   --again        survivors and listed equivalents once more
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    limit: { type: 'string', default: '100000' },
    first: { type: 'string', default: '100000' },
    heavy: { type: 'boolean', default: false },
    'no-model': { type: 'boolean', default: false },
    without: { type: 'string' },
    tests: { type: 'string', multiple: true },
    lanes: { type: 'string', default: '1' },
    known: { type: 'boolean', default: false },
    untried: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
  },
})
const say = (line: string): void => console.log(line)
const sources = readSources()
const named = byName(sources)
const items = battery().filter(
  ({ heavy, name }) =>
    (values.heavy || !heavy) &&
    !(values['no-model'] && name.startsWith('model: ')) &&
    !(values.without !== undefined && name.includes(values.without)) &&
    (values.tests?.some((text) => name.includes(text)) ?? true),
)
const reach = await Reach.of(items, sources, say)
const results = readResults()
const hunt = new Hunt(items, reach, Number(values.limit), Number(values.first), results, named)
const equivalent = new Set(namesIn(equivalents))

const todo = sources.flatMap((source) =>
  source.mutants
    .filter(
      ({ id, file }) =>
        values.only.some((text) => id.includes(text) || file.includes(text)) &&
        !(results.has(id) ? values.untried : values.known),
    )
    .filter((mutant) => {
      const known = results.get(mutant.id)
      if (equivalent.has(mutant.id)) return values.again
      if (values.tests) return known && known.verdict !== 'killed' && hunt.itemsFor(mutant).length > 0
      return known === undefined || !hunt.isFresh(mutant, known) || (values.again && known.verdict !== 'killed')
    })
    .map((mutant): [Source, Mutant] => [source, mutant]),
)
// In no order of theirs: a run that is broken off has tried a fair part of them.
todo.sort(([, a], [, b]) => (hashOf(a.id) < hashOf(b.id) ? -1 : 1))
say(`${todo.length} mutants to try`)
const queue = todo.values()
const refused = new Refused()
let done = 0
const began = performance.now()

/** Kills to confirm together: a test that fails without a mutant kills none. */
const togetherAtMost = 25

async function lane(): Promise<void> {
  const bench = new Bench(refused, false)
  const strict = new Bench(refused)
  let open: [Source, Mutant, Result][] = []
  const settle = async (): Promise<void> => {
    const killers = items.filter(({ name }) => open.some(([, , { by }]) => by === name))
    const failing = new Set<string>()
    for (const killer of killers)
      if (await bench.fails(killer, 5 + patienceFor(reach.secondsOf(killer)))) failing.add(killer.name)
    for (const [source, mutant, result] of open) {
      const answer = failing.has(result.by) ? await hunt.try(strict, source, mutant) : result
      if (answer.verdict === 'killed' || !values.tests) results.set(mutant.id, answer)
    }
    open = []
    writeResults(results)
    say(`${done} of ${todo.length}, ${Math.round((performance.now() - began) / 1000)} s`)
  }
  try {
    for (const [source, mutant] of queue) {
      const result = await hunt.try(bench, source, mutant)
      if (result.verdict === 'killed') open.push([source, mutant, result])
      else if (!values.tests) {
        results.set(mutant.id, result)
        say(`${result.verdict}: ${mutant.file}:${mutant.line} ${mutant.id} ${result.by}`)
      }
      done += 1
      if (open.length >= togetherAtMost) await settle()
    }
    await settle()
  } finally {
    bench.remove()
    strict.remove()
  }
}

await Promise.all(Array.from({ length: Number(values.lanes) }, lane))
for (const id of results.keys()) if (!named.has(id)) results.delete(id)
writeResults(results)
const counts = countsOf(sources, results)
if (counts.untried === 0) writeSummary(sources, results)
else say(`${counts.untried} mutants have no answer yet: docs/mutation-score.md stays as it is`)
for (const id of named.keys()) {
  const verdict = results.get(id)?.verdict ?? 'untried'
  if (equivalent.has(id) && verdict === 'killed') say(`listed as equivalent, and killed: ${id}`)
  else if (!equivalent.has(id) && verdict !== 'killed' && verdict !== 'untried') say(`${verdict}: ${id}`)
}
for (const name of refused.alone) say(`no killer: ${name} fails without a mutant`)
say(JSON.stringify(counts))
say(`score ${score(counts)}`)
const isWrong = (id: string): boolean => {
  const verdict = results.get(id)?.verdict
  return equivalent.has(id) ? verdict === 'killed' : verdict === 'survived'
}
const wrong = [...named.keys()].filter(isWrong).length
say(`${wrong} wrong: killed though listed, or alive though not`)
process.exitCode = wrong + refused.alone.size > 0 ? 1 : 0
