import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { busyness } from '../../until.js'
import { knownTimes } from '../../runner/schedule.js'
import type { Verdict } from './answer.js'
import { battery, everyTest, hashOf, type Item } from './battery.js'
import { Bench, Refused } from './bench.js'
import { equivalents, ofRooms } from './equivalents.js'
import { namesIn } from './listed.js'
import { byName, type Mutant, readSources, type Source, sourcesAt } from './mutants.js'
import { inOrder, nearest } from './order.js'
import { keptOfRooms, readResults, type Result, writeResults } from './results.js'
import { writeRooms } from './summary.js'

/*
 * Draws mutants of the program as it is, as many as fit into some seconds, and puts each before the tests that lead to its file until one
 * notices it: mutants of the core, or of the files and rooms that the arguments name (`npm run mutant -- src/agent/pacing.ts`). Outside the
 * core, only the tests that speak of the file are asked. A mutant that none notices fails the run, unless it is listed as equivalent; so does a test that does
 * not pass without a mutant, and a listed name that no mutant has.
 *
 *   --seed N       the same seed draws the same mutants, in the same order, whatever changes elsewhere in the program
 *   --seconds N    no mutant is begun after them
 *   --lanes N      so many at a time
 *   --only TEXT    of the mutants whose name, or whose file's path, holds this
 *   --patience N   seconds for one mutant, on a machine that does nothing else: a mutant that lives longer is put before the rest of its
 *                  tests at the end, one at a time, so that no verdict depends on the machine's load
 *   --tolerate N   so many survivors fail nothing: for a draw of untried mutants
 *   --names FILE   of the mutants that this file names, one a line
 *   --no-model     before the tests alone
 *   --keep         none that has an answer already; the answers go into the table by room of docs/mutation-score.md
 *   --again        with it: those that survived, and no others
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '40' },
    lanes: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    patience: { type: 'string', default: '120' },
    tolerate: { type: 'string', default: '0' },
    names: { type: 'string' },
    'no-model': { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
  },
})

const times = knownTimes()
/** The seconds of a test without a mutant; of an untimed one so many. Outside the core most tests are small. One that takes many times longer hangs. */
const secondsOf = ({ name }: Item): number =>
  positionals.length > 0 ? Math.min(2, Math.max(1, times[name] ?? 1)) : Math.max(1, times[name] ?? 5)

type Drawn = readonly [Source, Mutant]

/** A mutant that none of its first tests has noticed, and how many those were. */
type Unfinished = readonly [Drawn, number]

const ofCore = readSources()
const isCore = (file: string): boolean => ofCore.some((source) => source.file === file)
const sources = positionals.length > 0 ? sourcesAt(positionals, ofCore) : ofCore
const copied = sources.every(({ file }) => isCore(file)) ? undefined : ['test', 'bench']
const named = byName(sources)
const listed = namesIn([...equivalents, ...ofRooms])
const outdated = positionals.length > 0 ? [] : namesIn(equivalents).filter((name) => !named.has(name))
const kept = values.keep ? readResults(keptOfRooms) : new Map<string, Result>()
const asked = values.names === undefined ? undefined : readFileSync(values.names, 'utf8').split('\n')
function isDrawn({ id, file, context }: Mutant): boolean {
  if (listed.includes(id)) return false
  const before = kept.get(id)
  if (before?.hash === hashOf(context) ? !values.again || before.verdict !== 'survived' : values.again) return false
  return asked?.includes(id) ?? `${id}\n${file}`.includes(values.only)
}
const unlisted = sources.flatMap((source) => source.mutants.filter(isDrawn).map((mutant): Drawn => [source, mutant]))
if (unlisted.length === 0) throw new Error(`no mutant that is to be noticed has a name or a file with ${values.only}`)
const items = battery().filter(({ heavy, isTest }) => !heavy && (isTest || !values['no-model']))
const others = everyTest()
const candidatesFor = (file: string): Item[] =>
  isCore(file) ? inOrder(items, file, times) : nearest(others, file, times)
const refused = new Refused()
const verdicts: Record<Verdict, number> = { killed: 0, hangs: 0, breaks: 0, survived: 0 }

const unfinished: Unfinished[] = []

/** Puts the mutant before one test after the other, from the nth on, and says what came of it. `patience`: seconds until it waits for the end. */
async function judge(bench: Bench, drawn: Drawn, patience: number, first = 0): Promise<void> {
  const [source, mutant] = drawn
  const began = performance.now()
  const candidates = candidatesFor(mutant.file)
  let asked = first
  let verdict: Verdict = 'survived'
  let by = ''
  for (const item of candidates.slice(first)) {
    if (verdict !== 'survived' || performance.now() - began > 1000 * patience) break
    verdict = await bench.ask(source, mutant, item, secondsOf(item))
    by = item.name
    asked += 1
  }
  const waits = verdict === 'survived' && asked < candidates.length
  if (waits) unfinished.push([drawn, asked])
  else verdicts[verdict] += 1
  // What only some of its tests have let live has no answer.
  if (values.keep && !waits) {
    kept.set(mutant.id, { verdict, by, hash: hashOf(mutant.context) })
    writeResults(kept, keptOfRooms)
  }
  const end = verdict === 'survived' ? `${asked} of ${candidates.length} tests` : `${by}, test ${asked}`
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  console.log(`${waits ? 'lives so far' : verdict}: ${mutant.file}:${mutant.line}: ${mutant.id}: ${end}, ${seconds} s`)
}

/** What hangs or breaks was noticed, though no test has said so. */
function score({ killed, hangs, breaks, survived }: Readonly<Record<Verdict, number>>): string {
  const caught = killed + hangs + breaks
  return `score ${((100 * caught) / (caught + survived)).toFixed(1)} %: ${caught} caught, ${killed} by a test's own words, of ${caught + survived}`
}

console.log(`seed ${values.seed} (replay with --seed ${values.seed})`)
const end = performance.now() + 1000 * Number(values.seconds)
const place = ([, { id }]: Drawn): string => hashOf(values.seed, id)
/** From each of the rooms that the arguments name in turn. */
const turns = new Map<string, number>()
const drawn = unlisted
  .sort((a, b) => (place(a) < place(b) ? -1 : 1))
  .map((one): [Drawn, number] => {
    const room = positionals.find((path) => one[1].file.startsWith(path)) ?? ''
    const turn = turns.get(room) ?? 0
    turns.set(room, turn + 1)
    return [one, turn]
  })
  .sort(([, a], [, b]) => a - b)
  .map(([one]) => one)
  .values()

async function lane(): Promise<void> {
  const bench = new Bench(refused, true, copied)
  try {
    for (const one of drawn) {
      await judge(bench, one, Number(values.patience) * busyness())
      if (performance.now() > end) return
    }
  } finally {
    bench.remove()
  }
}

async function rest(): Promise<void> {
  const bench = new Bench(refused, true, copied)
  try {
    for (const [drawn, asked] of unfinished.splice(0)) await judge(bench, drawn, Infinity, asked)
  } finally {
    bench.remove()
  }
}

await Promise.all(Array.from({ length: Number(values.lanes) }, lane))
// Where all of them may live, the rest of their tests, minutes for each, would change no verdict.
if (verdicts.survived + unfinished.length > Number(values.tolerate)) await rest()
for (const name of outdated) console.error(`outdated: a list names a mutant that is gone: ${name}`)
for (const name of refused.alone) console.error(`outdated: ${name} fails without a mutant`)
if (values.keep) writeRooms(sourcesAt(['src', 'torture'], ofCore), kept, values.seed)
const { killed, hangs, breaks, survived } = verdicts
console.log(
  `${killed + hangs + breaks + survived} of ${unlisted.length} mutants tried: ${killed} killed, ${hangs + breaks} hang or break, ` +
    `${survived} survived, ${unfinished.length} live so far and are tolerated; ${outdated.length + refused.alone.size} outdated; ${listed.length} are listed`,
)
console.log(score(verdicts))
if (survived > 0)
  console.error('a survivor needs a test, or an entry of test/crash/mutants/equivalents.ts with its reason')
const isTolerated = survived <= Number(values.tolerate)
process.exitCode = isTolerated && outdated.length + refused.alone.size === 0 ? 0 : 1
