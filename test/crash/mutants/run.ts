import { parseArgs } from 'node:util'
import { battery, hashOf } from './battery.js'
import { Bench, Refused } from './bench.js'
import { equivalents } from './equivalents.js'
import { Hunt } from './hunt.js'
import { type Mutant, readSources, type Source } from './mutants.js'
import { Reach } from './reach.js'
import { readResults, writeResults } from './results.js'
import { countsOf, score, writeSummary } from './summary.js'

/*
 * Every mutant that the operators make of the program, before the tests that come by it.
 *
 *   --only TEXT    mutants whose name holds this
 *   --limit N      no test that takes longer than so many seconds
 *   --heavy        the long tests, too
 *   --no-model     the tests alone
 *   --lanes N      so many at a time
 *   --known        only those that have been tried before
 *   --again        those that lived, and those that are listed as equivalent, once more
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    limit: { type: 'string', default: '100000' },
    heavy: { type: 'boolean', default: false },
    'no-model': { type: 'boolean', default: false },
    lanes: { type: 'string', default: '1' },
    known: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
  },
})
const say = (line: string): void => console.log(line)
const sources = readSources()
const items = battery().filter(
  ({ heavy, name }) => (values.heavy || !heavy) && !(values['no-model'] && name.startsWith('model: ')),
)
const reach = await Reach.of(items, sources, say)
const hunt = new Hunt(items, reach, Number(values.limit))
const results = readResults()
const equivalent = new Set(equivalents.flatMap(({ mutants }) => mutants))

const todo = sources.flatMap((source) =>
  source.mutants
    .filter(({ id }) => id.includes(values.only) && (!values.known || results.has(id)))
    .filter((mutant) => {
      const known = results.get(mutant.id)
      if (equivalent.has(mutant.id)) return values.again
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

async function lane(): Promise<void> {
  const bench = new Bench(refused)
  try {
    for (const [source, mutant] of queue) {
      const result = await hunt.try(bench, source, mutant)
      results.set(mutant.id, result)
      done += 1
      if (result.verdict !== 'killed') say(`${result.verdict}: ${mutant.file}:${mutant.line} ${mutant.id} ${result.by}`)
      if (done % 20 === 0) {
        writeResults(results)
        say(`${done} of ${todo.length}, ${Math.round((performance.now() - began) / 1000)} s`)
      }
    }
  } finally {
    bench.remove()
  }
}

await Promise.all(Array.from({ length: Number(values.lanes) }, lane))
const ids = new Set(sources.flatMap(({ mutants }) => mutants.map(({ id }) => id)))
for (const id of results.keys()) if (!ids.has(id)) results.delete(id)
writeResults(results)
writeSummary(sources, results)
const counts = countsOf(sources, results)
for (const { id } of sources.flatMap(({ mutants }) => mutants)) {
  const verdict = results.get(id)?.verdict ?? 'untried'
  if (equivalent.has(id) && verdict === 'killed') say(`listed as equivalent, and killed: ${id}`)
  else if (!equivalent.has(id) && verdict !== 'killed' && verdict !== 'untried') say(`${verdict}: ${id}`)
}
for (const name of refused.alone) say(`no killer: ${name} fails without a mutant`)
say(JSON.stringify(counts))
say(`score ${score(counts)}`)
