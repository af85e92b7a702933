/**
 * What holdfast costs: a publication, beside library-go's order of calls (publications.ts), and an agent (agent.ts). `npm run bench` as
 * root. README.md here says how to read it.
 */
import { writeFileSync } from 'node:fs'
import { availableParallelism, loadavg, release } from 'node:os'
import { parseArgs } from 'node:util'
import type { FileSystem } from '../test/disk/disk.js'
import { enterPrivateMounts } from '../test/disk/private-mounts.js'
import { describeFootprint, type Footprint } from './footprint.js'
import { describeGoal, goalsOfAgent, isMet, type Goal } from './goals.js'
import type { Result } from './limits.js'
import { measurePublications, missingForPublications } from './publications.js'
import { table } from './report.js'

const usage = `usage: npm run bench -- [--only publications|agent] [--rounds N] [--flush-time MS] [--file-systems ext4,xfs,btrfs] [--brief] [--json FILE] [--check] [--goals]`

/** Secrets of the agents that are measured. */
const watched = [50, 500]
/** Windows without a change: what came before has echoes in the first two. */
const windows = 5

const { only, rounds, flushTime, fileSystems, brief, json, check, goals } = options()
if (only !== 'agent') await preparePublications()
const [load = 0] = loadavg()
if (load > availableParallelism() / 4) {
  console.error(`bench: the machine is busy (load ${load.toFixed(1)}): the counts of flushes hold, the times do not`)
}
/** What could not be measured. The rest is not lost for it. */
const unfit: string[] = []
const aims: { readonly what: string; readonly goal: Goal }[] = []

const results = only === 'agent' ? [] : await publications()
for (const { fileSystem, what, goals } of results) {
  for (const goal of goals) aims.push({ what: `${fileSystem}, ${what}`, goal })
}
const agents = only === 'publications' ? [] : await agent()
for (const footprint of agents) {
  for (const goal of goalsOfAgent(footprint)) aims.push({ what: `agent, ${footprint.watched} Secrets`, goal })
}

console.log(
  `\ngoals: ${aims.filter(({ goal }) => isMet(goal)).length} of ${aims.length} met${goals ? '' : ' (--goals fails on the others)'}`,
)
for (const { what, goal } of aims) console.log(`${isMet(goal) ? 'met    ' : 'not met'}  ${what}, ${describeGoal(goal)}`)
if (json !== undefined) {
  const run = { kernel: release(), node: process.version, flushMilliseconds: flushTime, rounds, results, agents }
  writeFileSync(json, `${JSON.stringify(run, undefined, 2)}\n`)
}
const broken = check && results.some(({ failures }) => failures.length > 0)
if (broken || (goals && aims.some(({ goal }) => !isMet(goal)))) process.exit(1)
for (const problem of unfit) console.error(`bench: ${problem}`)
process.exit(unfit.length > 0 ? 2 : 0)

/** This process waits for a child with private mounts, which does the rest. */
async function preparePublications(): Promise<void> {
  const missing = await missingForPublications(fileSystems)
  if (missing !== undefined) {
    console.error(`bench: this needs ${missing}`)
    process.exit(2)
  }
  await enterPrivateMounts()
}

async function publications(): Promise<Result[]> {
  const results = await measurePublications(fileSystems, { rounds, flushTime, brief })
  console.log(table(results))
  for (const { fileSystem, what, failures, remarks } of results) {
    for (const failure of failures) console.log(`FAIL ${fileSystem}, ${what}: ${failure}`)
    for (const remark of remarks) console.log(`note ${fileSystem}, ${what}: ${remark}`)
  }
  return results
}

async function agent(): Promise<Footprint[]> {
  try {
    // Loaded only where it is wanted: it brings a process that cleans up after it.
    const { measureAgents } = await import('./agent.js')
    const found = await measureAgents(watched.map((watched) => ({ watched, windows })))
    for (const footprint of found) console.log(`\n${describeFootprint(footprint).join('\n')}`)
    return found
  } catch (error) {
    unfit.push(`the agent could not be measured: ${(error as Error).message}`)
    return []
  }
}

interface Options {
  only: 'publications' | 'agent' | undefined
  rounds: number
  flushTime: number
  fileSystems: FileSystem[]
  brief: boolean
  json: string | undefined
  check: boolean
  goals: boolean
}

function options(): Options {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        rounds: { type: 'string', default: '5' },
        'flush-time': { type: 'string', default: '10' },
        'file-systems': { type: 'string', default: 'ext4,xfs,btrfs' },
        brief: { type: 'boolean', default: false },
        json: { type: 'string' },
        check: { type: 'boolean', default: false },
        goals: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    return {
      only: partNamed(values.only),
      rounds: positive('--rounds', values.rounds),
      flushTime: positive('--flush-time', values['flush-time']),
      fileSystems: values['file-systems'].split(',').map(fileSystemNamed),
      brief: values.brief,
      json: values.json,
      check: values.check,
      goals: values.goals,
    }
  } catch (error) {
    console.error(`bench: ${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} takes a whole number from 1, not ${text}`)
  return value
}

function partNamed(name: string | undefined): Options['only'] {
  if (name === undefined || name === 'publications' || name === 'agent') return name
  throw new Error(`--only knows publications and agent, not ${name}`)
}

function fileSystemNamed(name: string): FileSystem {
  if (name === 'ext4' || name === 'xfs' || name === 'btrfs') return name
  throw new Error(`--file-systems knows ext4, xfs and btrfs, not ${name}`)
}
