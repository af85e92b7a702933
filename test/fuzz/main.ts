/**
 * `npm run fuzz`: makes inputs for each reader of untrusted bytes, guided by the coverage of those before, and compares the readings with
 * other readers'. Exit code 1: there are findings.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seed } from '../seed.js'
import { decodeInput, encodeInput, growCorpus, readCorpus } from './corpus.js'
import { goReadings } from './go-readings.js'
import { limits, runTarget, type Finding } from './run-target.js'
import { loadTarget, targetNames } from './targets/index.js'

const usage = `usage: npm run fuzz -- [TARGET...] [--seconds N] [--grow] [--input JSON]

  TARGET        ${targetNames.join(', ')}; default: all
  --seconds N   for all of them together; default 60
  --grow        adds inputs that reach something new to test/fuzz/corpus
  --help        prints this
  --input JSON  this input alone, as a finding prints it

HOLDFAST_SEED=N draws the same inputs again. Limits of one input: ${limits.slowest} ms of processor time, ${limits.heap} MiB of heap, ${limits.stack} MiB of stack.
`

/** Longer inputs are no reading for people. */
const longestKept = 1_000

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      help: { type: 'boolean' },
      seconds: { type: 'string', default: '60' },
      grow: { type: 'boolean' },
      input: { type: 'string' },
    },
  })
  const names = positionals.length > 0 ? positionals : targetNames
  const seconds = Number(values.seconds)
  if (values.help === true || names.some((name) => !targetNames.includes(name)) || !(seconds > 0)) {
    process.stderr.write(usage)
    return 2
  }
  const go = goReadings()
  console.log(`seed ${seed}: HOLDFAST_SEED=${seed} npm run fuzz draws the same inputs again`)
  let found = 0
  for (const name of names) {
    const given = values.input === undefined ? readCorpus(name) : [decodeInput(values.input)]
    const time = values.input === undefined ? (seconds * 1000) / names.length : 0
    const { inputs, share, findings, fresh } = await runTarget({
      target: name,
      seed,
      corpus: given,
      time,
      inputs: Infinity,
      findings: 20,
      go,
    })
    const covered =
      share === undefined ? 'cut' : `${(100 * share).toFixed(1)} % of ${(await loadTarget(name)).files.join(', ')}`
    console.log(`${name}: ${inputs} inputs, ${given.length} given, ${fresh.length} new; ${covered}`)
    for (const finding of findings) show(name, finding)
    found += findings.length
    if (values.grow === true)
      growCorpus(
        name,
        fresh.filter(({ length }) => length <= longestKept),
      )
  }
  console.log(`${found} findings`)
  return found === 0 ? 0 : 1
}

function show(name: string, { input, message }: Finding): void {
  console.log(`FINDING in ${name}: ${message}`)
  const encoded = encodeInput(input)
  if (encoded.length <= 4_000) {
    console.log(`  npm run fuzz -- ${name} --input '${encoded.replaceAll("'", String.raw`'\''`)}'`)
    return
  }
  const path = join(mkdtempSync(join(tmpdir(), 'holdfast-fuzz-')), `${name}.json`)
  writeFileSync(path, encoded)
  console.log(`  npm run fuzz -- ${name} --input "$(cat ${path})"   # ${input.length} bytes`)
}

process.exitCode = await main(process.argv.slice(2))
