import { parseArgs } from 'node:util'
import { type Row, runMutations, survivors, table, untried } from './mutation-table.js'
import { mutations } from './mutations.js'
import { misfit } from './mutation.js'
import { makeProgram } from './program.js'
import { runProgram } from './suites.js'
import { Random } from '../random.js'

/*
 * Every crash state of the model disk, then every mutation of the program against the suites.
 *
 *   --seed N             for the model; HOLDFAST_SEED does the same
 *   --draw SECONDS       mutations in an order that is drawn anew, until the time is over; the seed is printed
 *   --draw-seed N        draws the same order again
 *   --no-mutations       the model alone
 *   --no-model           the mutations alone
 *   --mutation TEXT      only mutations whose name holds this
 *   --suite NAME         only this suite: own test, model, syscalls, power
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: process.env['HOLDFAST_SEED'] ?? '1' },
    'no-mutations': { type: 'boolean', default: false },
    'no-model': { type: 'boolean', default: false },
    draw: { type: 'string', default: 'Infinity' },
    'draw-seed': { type: 'string', default: `${process.pid * 7919 + (Date.now() % 7919)}` },
    mutation: { type: 'string', default: '' },
    suite: { type: 'string', default: '' },
  },
})
/** Milliseconds for the model. */
const patience = 2 * 3600 * 1000
const state = { green: true, complaints: new Array<string>() }

async function model(): Promise<void> {
  console.log(`model: seed ${values.seed} (replay with --seed ${values.seed})`)
  const program = makeProgram()
  try {
    const args = ['--effort', 'normal', '--seed', values.seed]
    const command = ['test/crash/model/main.js', ...args]
    const { code, output, errors } = await runProgram(program.directory, command, {}, patience)
    if (errors !== '') console.error(errors)
    console.log(`model: ${output.trim()}`)
    state.green &&= code === 0
  } finally {
    program.remove()
  }
}

function printRow({ mutation: { name }, cells, seconds }: Row): void {
  const words = cells.map(({ trial, words, complaint }) =>
    words.length > 0 ? `${trial.suite}: ${complaint}` : `${trial.suite}: nothing`,
  )
  console.log(`  ${name} (${seconds.toFixed(1)} s)\n    ${words.join('\n    ')}`)
}

function inOrder<T>(all: readonly T[]): readonly T[] {
  return values.draw === 'Infinity' ? all : new Random(Number(values['draw-seed'])).shuffled(all)
}

async function mutationTable(): Promise<void> {
  const extent = {
    suite: values.suite,
    isRoot: process.geteuid?.() === 0,
    width: 2,
    seconds: Number(values.draw),
  }
  const chosen = inOrder(mutations.filter(({ name }) => name.includes(values.mutation)))
  // All of them at once, before anything runs for minutes.
  const unfit = chosen.flatMap((mutation) => misfit(mutation) ?? [])
  if (unfit.length > 0) throw new Error(`the core has changed, and these must follow it:\n${unfit.join('\n')}`)
  const { complaints } = state
  const tried = await runMutations(chosen, extent, printRow)
  const { rows } = tried
  complaints.push(...tried.complaints)
  console.log(`\n${table(rows)}\n`)
  const left = survivors(rows)
  const rest = untried(rows)
  for (const { mutation } of left) console.log(`not caught: ${mutation.name}`)
  for (const complaint of complaints) console.log(`failed: the program without a mutation does not pass ${complaint}`)
  for (const { mutation } of rest) console.log(`skipped: mutation ${mutation.name} (needs root)`)
  state.green &&= left.length + complaints.length === 0
  const caught = rows.length - left.length - rest.length
  if (rows.length < chosen.length) {
    console.log(
      `drawn: ${rows.length} of ${chosen.length} mutations (--draw-seed ${values['draw-seed']}); each is tried without --draw`,
    )
  }
  console.log(`${caught} of ${rows.length} mutations are caught by every suite that must catch them`)
  console.log(`${caught} passed, ${left.length + complaints.length} failed, ${rest.length} skipped`)
}

if (!values['no-model'] && values.mutation === '') await model()
if (!values['no-mutations']) await mutationTable()
process.exitCode = state.green ? 0 : 1
