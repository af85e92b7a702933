import { parseArgs } from 'node:util'
import { modelSuite, runMutations, runProgram, type Suite, survivors, table } from './mutation-table.js'
import type { SuiteName } from './mutation.js'
import { mutations } from './mutations.js'
import { makeProgram } from './program.js'

/*
 * The proof that needs no root: every crash state of the model disk, then every mutation of the core against it.
 *
 *   --seed N             replays a run; HOLDFAST_SEED does the same
 *   --long               more states at each instant, and more chains
 *   --no-mutations       the model alone
 *   --mutation TEXT      only mutations whose name holds this, without the model on the core as it is
 *   --except TEXT        without the scenarios whose name holds this
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: process.env['HOLDFAST_SEED'] ?? '' },
    long: { type: 'boolean', default: false },
    'no-mutations': { type: 'boolean', default: false },
    mutation: { type: 'string', default: '' },
    except: { type: 'string', default: '' },
  },
})
const seed = values.seed === '' ? String(Date.now() % 1_000_000) : values.seed
console.log(`seed ${seed} (replay with --seed ${seed})`)

const shared = ['--seed', seed, '--except', values.except]
let green = true

if (values.mutation === '') {
  const program = makeProgram()
  try {
    const effort = values.long ? 'long' : 'normal'
    const { code, output, errors } = await runProgram(program.directory, ['--effort', effort, ...shared])
    if (errors !== '') console.error(errors)
    console.log(`model: ${output.trim()}`)
    green = code === 0
  } finally {
    program.remove()
  }
}

if (!values['no-mutations']) {
  const suites = new Map<SuiteName, Suite>([['model', modelSuite(shared)]])
  const chosen = mutations.filter(({ name }) => name.includes(values.mutation))
  const rows = await runMutations(
    suites,
    2,
    ({ mutation, caught }) => console.log(`  ${mutation.name}: ${caught.get('model') ?? 'not caught'}`),
    chosen,
  )
  console.log(`\n${table(rows)}\n`)
  const left = survivors(rows)
  for (const { mutation } of left) console.error(`not caught: ${mutation.name}`)
  green &&= left.length === 0
  console.log(`${rows.length - left.length} of ${rows.length} mutations are caught as they must be`)
}

process.exitCode = green ? 0 : 1
