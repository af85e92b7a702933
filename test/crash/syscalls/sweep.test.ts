/*
 * The real program; strace makes each of its writing calls its last one (SIGKILL), or makes it fail. Afterwards each target must be old or
 * new and whole, exit code and message true, and the next run must complete it and leave nothing.
 *
 * HOLDFAST_SWEEP=all takes every fault at every call, reading ones too; a number so many of them; =cheap a few, up to the first that breaks
 * something; =steps none, and only looks for the calls that every run must make. HOLDFAST_SWEEP_ONLY takes only sites of this description,
 * such as "EIO at sync_file_range"; HOLDFAST_SEED replays a sample.
 */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { scratch } from '../../durable/scratch.js'
import { executable, program } from './distribution.js'
import type { Fault, Job } from './judge.js'
import { seed } from '../../seed.js'
import { lives } from './lives.js'
import { scenarios } from './scenarios.js'
import { type CallResult, describe, errors, jobsOf, prepare, sweep } from './sweep.js'

t.setTimeout(0)

const extent = process.env['HOLDFAST_SWEEP'] ?? 'usual'
const only = process.env['HOLDFAST_SWEEP_ONLY'] ?? ''
const allFaults: readonly Fault[] = ['SIGKILL', ...errors]
const faults: readonly Fault[] = extent === 'cheap' ? ['SIGKILL', 'EIO'] : allFaults
const runs = { steps: 0, cheap: 120, usual: 160, all: Infinity }[extent] ?? Number(extent)
/** A brief run knows the algorithm alone; the steps after a first publication rest on that. */
const isBrief = extent === 'steps' || extent === 'cheap'
const swept = isBrief ? scenarios : [...scenarios, ...lives]
/** As many as there is time for each day: a run of these takes twice as long. */
const usualLives = 6
const width = 2

const rowOf = ({ prepared, site }: Job): string => `| ${prepared.scenario.name} | ${site.call} |`

/** What was aimed at each call of each scenario. */
function rowsOf(results: readonly CallResult[]): Map<string, CallResult[]> {
  const rows = new Map<string, CallResult[]>()
  for (const result of results) {
    const key = rowOf(result.job)
    rows.set(key, [...(rows.get(key) ?? []), result])
  }
  return rows
}

/** The injected faults, and their breaches: scenario × call, one column for each fault. */
function tableOf(results: readonly CallResult[]): string[] {
  const cell = (row: readonly CallResult[], fault: Fault): string => {
    const met = row.filter(({ job, wrong }) => job.fault === fault && wrong !== undefined)
    const broken = met.filter(({ wrong }) => (wrong ?? []).length > 0).length
    return broken > 0 ? `${met.length}, **${broken} broke**` : `${met.length}`
  }
  return [
    `| scenario | call | ${faults.join(' | ')} |`,
    `|---|---|${allFaults.map(() => '---').join('|')}|`,
    ...[...rowsOf(results)]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, row]) => `${key} ${allFaults.map((fault) => cell(row, fault)).join(' | ')} |`),
  ]
}

/** Calls of a scenario at which faults were aimed, and none was injected. */
function blindRows(results: readonly CallResult[]): [string, CallResult[]][] {
  return [...rowsOf(results)].filter(([, row]) => row.every(({ wrong }) => wrong === undefined))
}

const hasStrace = spawnSync('strace', ['-V']).status === 0

await t.test(`faults at system calls, seed ${seed}`, { skip: hasStrace ? false : 'needs strace' }, async (t) => {
  const directory = scratch(t)
  const hold = program(new URL('hold.js', import.meta.url))
  const held = { hold, executable: executable(directory), scratch: directory }
  const prepared = []
  for (const scenario of swept) {
    const { prepared: ready, missing } = await prepare(scenario, held)
    t.same(missing, [], `${scenario.name}: every step is there`)
    if (missing.length > 0 && isBrief) return
    prepared.push(ready)
  }
  if (extent === 'steps') return
  const jobs = jobsOf(prepared, faults, extent === 'all', seed).filter((job) => describe(job).includes(only))
  t.ok(jobs.length > 0, `there is something to inject${only && `: ${only}`}`)
  const began = performance.now()
  const isLife = ({ prepared }: Job): boolean => lives.includes(prepared.scenario)
  const draws =
    extent === 'usual'
      ? [
          { from: jobs.filter((job) => !isLife(job)), wanted: runs },
          { from: jobs.filter(isLife), wanted: usualLives },
        ]
      : [{ from: jobs, wanted: runs }]
  const results: CallResult[] = []
  for (const { from, wanted } of draws) results.push(...(await sweep(from, wanted, held, width, extent === 'cheap')))
  // A busy program makes a call on another thread than it did when it was watched: one fault at each call must be met somewhere.
  const drawn = new Set(results.map(({ job }) => job))
  for (const [row] of blindRows(results)) {
    const others = jobs.filter((job) => !drawn.has(job) && rowOf(job) === row)
    results.push(...(await sweep(others, 1, held, width, extent === 'cheap')))
  }
  const failed = results.filter(({ wrong }) => wrong !== undefined && wrong.length > 0)
  const missed = results.filter(({ wrong }) => wrong === undefined)
  for (const line of tableOf(results)) t.comment(line)
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  t.comment(
    `${results.length - missed.length} of ${jobs.length} faults injected in ${seconds} s, ${failed.length} broke something; ` +
      `${missed.length} met no such call; replay with HOLDFAST_SWEEP=${extent} HOLDFAST_SEED=${seed}`,
  )
  const complaints = failed.map(({ job, wrong = [] }) => `${describe(job)}: ${wrong.join('; ')}`)
  t.same(complaints, [], 'each was withstood')
  const blind = blindRows(results).map(([, row]) => row.map(({ job }) => describe(job)).join('; '))
  t.same(blind, [], 'no call of a scenario is out of reach')
})
