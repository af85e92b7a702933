import { existsSync, readdirSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { inParallel } from '../../../src/parallel.js'
import { testsOf } from '../../tested.js'
import { busyness } from '../../until.js'
import { type Edit, edited } from '../changes.js'
import { hashOf } from '../mutants/battery.js'
import { equivalents } from '../mutants/equivalents.js'
import { namesIn } from '../mutants/listed.js'
import { readSources } from '../mutants/mutants.js'
import { inRoom } from '../mutants/trial.js'
import { openWorkshop, type Workshop } from '../mutants/workshop.js'
import { editsOf, type SuiteName } from '../mutation.js'
import { mutations } from '../mutations.js'
import { runGroup } from '../process-group.js'
import { coreTexts } from '../program.js'
import { argumentsOf, historiesTrial, modelTrial, ownTrial, sweepTrial, type Trial, trialOf } from '../suites.js'
import { type Oracle, oracles, readRows, scores, writeRows } from './table.js'

/*
 * Puts each oracle alone before mutations of the core, half of them by hand and half by rule. Without options, asks the oracles that
 * rows.json names for each whether they catch it still, in twice the time, and fails where one does not: a row that fell.
 *
 *   --record       asks all oracles, and writes rows.json after each mutation. Rows that it has stay: an aborted run goes on
 *   --only TEXT    mutations whose name holds this
 *   --jobs N       mutations at a time; default: one for each processor
 */
const { values } = parseArgs({
  options: {
    record: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    jobs: { type: 'string' },
  },
})

const jobs = values.jobs === undefined ? availableParallelism() : Number(values.jobs)

/** Decides the draw: of each kind the mutations whose names have the lowest hashes with it, whatever else the lists hold. */
const seed = '49'
const ofEachKind = 31

/** Seconds of processor time for each program of an oracle, so that a busy machine changes no row. */
const allowed: Readonly<Record<Oracle, number>> = {
  unit: 10,
  rules: 10,
  failures: 10,
  model: 10,
  histories: 5,
  calls: 10,
}
/** Milliseconds. What has neither ended nor used up its processor time by then waits for what never comes. */
const patience = (): number => 240_000 * busyness()

type Program = Pick<Trial, 'command' | 'env'>

interface Drawn {
  readonly name: string
  readonly edits: readonly Edit[]
  /** What the list of mutations by hand names for it. */
  readonly named: (suite: SuiteName) => readonly Program[]
}

const sources = readSources()
const texts = new Map([...coreTexts(), ...sources.map(({ file, text }) => [file, text] as const)])
const byHand = mutations.map((mutation): Drawn => ({
  name: mutation.name,
  edits: editsOf(mutation),
  named: (suite) => mutation.caughtBy.filter((by) => by.suite === suite).map((by) => trialOf(by, mutation)),
}))
const listed = namesIn(equivalents)
const byRule = sources.flatMap(({ file, mutants }) =>
  mutants
    .filter(({ id }) => !listed.includes(id))
    .map(({ id, change }): Drawn => ({ name: id, edits: [{ ...change, file }], named: () => [] })),
)

/** Behind the FileSystem interface, or beside it: the model disk has something else in its place. */
const isBeyondTheModel = ({ edits }: Drawn): boolean =>
  edits.every(({ file }) => /^(native|src\/durable\/posix)\//.test(file))

const tests = (files: readonly string[]): Program[] => files.map((file) => ownTrial(file, false))
const ofRules = tests(['test/durable/calls.test.ts'])
const ofFailures = tests(['test/durable/failing-calls.test.ts', 'test/durable/interrupted-calls.test.ts'])
const keyOf = ({ command }: Program): string => command.join(' ')
const others = new Set([...ofRules, ...ofFailures].map(keyOf))

function programsOf(oracle: Oracle, drawn: Drawn): readonly Program[] {
  switch (oracle) {
    case 'unit': {
      const all = [...drawn.named('own test'), ...tests(drawn.edits.flatMap(({ file }) => testsOf(file)))]
      return all.filter((one) => !others.has(keyOf(one)))
    }
    case 'rules':
      return ofRules
    case 'failures':
      return ofFailures
    case 'model':
      return [...drawn.named('model'), modelTrial('', '', 'brief', 'batch')]
    case 'histories':
      return [historiesTrial(), historiesTrial(['--lives', '20000'])]
    case 'calls':
      return [sweepTrial({ HOLDFAST_SWEEP: 'steps' })]
  }
}

/** Kills a program once its processor time is over: what plays on the model disk for seconds meets no signal that it has a handler for. */
const limited = 'ulimit -t "$0" && exec "$@"'

/** Whether the program fails on this copy, in so many seconds of processor time. */
async function fails(shop: Workshop, program: Program, seconds: number): Promise<boolean> {
  // Its first failure is enough.
  const env = { ...program.env, TAP_BAIL: '1' }
  const { command, options } = inRoom(shop, argumentsOf(shop.directory, program.command), env)
  const { code, signal, hangs } = await runGroup('sh', ['-c', limited, `${seconds}`, ...command], options, patience())
  for (const name of readdirSync(shop.temporary)) rmSync(join(shop.temporary, name), { recursive: true, force: true })
  return hangs || (signal !== 'SIGKILL' && code !== 0)
}

const unmutated = openWorkshop()
/** Programs that were tried without a mutation: where one fails so, its failure says nothing. */
let passed: Promise<unknown> = Promise.resolve()
const passes = new Map<string, Promise<boolean>>()

function passesUnmutated(program: Program): Promise<boolean> {
  const key = keyOf(program)
  const answer =
    passes.get(key) ??
    passed
      .then(() => fails(unmutated, program, 120))
      .then((failed) => {
        if (failed) console.log(`fails without a mutation, and counts for nothing: ${key}`)
        return !failed
      })
  passes.set(key, answer)
  // One at a time in the one copy.
  passed = answer
  return answer
}

async function catches(oracle: Oracle, drawn: Drawn, mutated: Workshop): Promise<boolean> {
  if (isBeyondTheModel(drawn) && oracle !== 'unit' && oracle !== 'calls') return false
  const seconds = allowed[oracle] * (values.record ? 1 : 2)
  for (const program of programsOf(oracle, drawn)) {
    // A few tests of other rooms need more than a copy has.
    if (!existsSync(join(mutated.directory, program.command[0] ?? ''))) continue
    if ((await fails(mutated, program, seconds)) && (await passesUnmutated(program))) return true
  }
  return false
}

/** Which of these oracles catch it, in this copy. */
async function catchersOf(drawn: Drawn, asked: readonly Oracle[], mutated: Workshop): Promise<Oracle[]> {
  const began = performance.now()
  const files = [...new Set(drawn.edits.map(({ file }) => file))]
  for (const file of files) {
    const own = drawn.edits.filter((edit) => edit.file === file)
    mutated.write(file, edited(texts.get(file) ?? '', own))
  }
  const caught: Oracle[] = []
  for (const oracle of asked) {
    const isCaught = await catches(oracle, drawn, mutated)
    if (isCaught) caught.push(oracle)
    // On a busy machine an oracle says nothing for minutes.
    console.log(`  ${drawn.name}: ${oracle}: ${isCaught ? 'catches it' : 'nothing'}`)
  }
  for (const file of files) mutated.write(file, texts.get(file) ?? '')
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  console.log(`${drawn.name}: ${caught.join(', ') || 'none'} (${seconds} s)`)
  return caught
}

function lowest(all: readonly Drawn[], count: number): Drawn[] {
  const place = ({ name }: Drawn): string => hashOf(seed, name)
  return [...all].sort((a, b) => (place(a) < place(b) ? -1 : 1)).slice(0, count)
}

const recorded = readRows()
const isMeant = (name: string): boolean => name.includes(values.only)

/** Works on these side by side, each in a copy of its own. */
async function inCopies<Item>(
  items: readonly Item[],
  work: (item: Item, copy: Workshop) => Promise<void>,
): Promise<void> {
  const left = items.values()
  await inParallel(Array.from({ length: jobs }), jobs, async () => {
    const copy = openWorkshop()
    try {
      for (const item of left) await work(item, copy)
    } finally {
      copy.remove()
    }
  })
}

async function record(): Promise<void> {
  const kinds = [byHand, byRule].map((all) => lowest(all, ofEachKind))
  const drawn = lowest(kinds.flat(), Infinity)
  const rows = new Map(drawn.flatMap(({ name }) => (recorded.has(name) ? [[name, recorded.get(name) ?? []]] : [])))
  await inCopies(
    drawn.filter(({ name }) => isMeant(name) && !rows.has(name)),
    async (one, copy) => {
      rows.set(one.name, await catchersOf(one, oracles, copy))
      writeRows(rows)
      console.log(scores(rows).join('\n'))
    },
  )
}

async function compare(): Promise<void> {
  const all = new Map([...byHand, ...byRule].map((one) => [one.name, one]))
  const fallen: string[] = []
  await inCopies(
    [...recorded].filter(([name]) => isMeant(name)),
    async ([name, before], copy) => {
      const drawn = all.get(name)
      if (drawn === undefined) {
        console.log(`gone: ${name}`)
        return
      }
      const now = await catchersOf(drawn, before, copy)
      const lost = before.filter((oracle) => !now.includes(oracle))
      if (lost.length > 0) fallen.push(`fell: ${name}: ${lost.join(', ')}`)
    },
  )
  console.log(`${fallen.length} of ${recorded.size} rows fell`)
  for (const line of fallen) console.log(line)
  process.exitCode = fallen.length > 0 ? 1 : 0
}

try {
  await (values.record ? record() : compare())
} finally {
  unmutated.remove()
}
