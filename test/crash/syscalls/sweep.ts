/** Every writing call of the program, made to fail or to be its last. */
import { rmSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Fault, type Job, judge, type Prepared, states } from './judge.js'
import { Random } from '../../random.js'
import { placeOf, type Scenario } from './scene.js'
import { exchangeIn, nameOf, sitesOf } from './sites.js'
import { type Program, type Traced, traced } from './traced.js'

export const errors: readonly Fault[] = ['EIO', 'ENOSPC', 'EDQUOT', 'EUCLEAN', 'EROFS', 'EINTR', 'EMFILE']

/** How many runs may aim at a call that a run did not make. */
const aims = 3

export interface CallResult {
  readonly job: Job
  /** undefined: the call was never met. */
  readonly wrong: readonly string[] | undefined
}

/** Runs the scenario without a fault; complains of calls that it should have made. */
export async function prepare(
  scenario: Scenario,
  program: Program,
): Promise<{ prepared: Prepared; missing: string[] }> {
  const root = join(program.scratch, 'prepare')
  mkdirSync(root)
  await scenario.prepare(root)
  const old = await states(scenario, root)
  const { env = {}, input = '' } = scenario
  const sites = await sitesOf(program, scenario.args(root), placeOf(root), { env, input })
  const prepared = { scenario, sites, old, new: await states(scenario, root) }
  rmSync(root, { recursive: true })
  const names = sites.map(({ call, subject }) => `${call} ${subject}`)
  const swap = exchangeIn(sites)
  const lacking = (wanted: readonly string[], made: readonly string[], when: string): string[] =>
    wanted.filter((name) => !made.includes(name)).map((name) => `no ${name.trim()} ${when} the exchange`)
  return {
    prepared,
    missing: [
      ...lacking(scenario.before, names.slice(0, swap), 'before'),
      ...lacking(scenario.after, names.slice(swap + 1), 'after'),
    ],
  }
}

/** Every fault at every writing call, in an order in which each kind comes before the second of its kind. */
export function jobsOf(all: readonly Prepared[], faults: readonly Fault[], reading: boolean, seed: number): Job[] {
  const jobs = all.flatMap((prepared) =>
    prepared.sites
      .filter(({ writes }) => writes || reading)
      .flatMap((site) => faults.map((fault) => ({ prepared, site, fault }))),
  )
  const seen = new Map<string, number>()
  const ranked = new Random(seed).shuffled(jobs).map((job) => {
    const kind = [job.prepared.scenario.name, job.site.call, job.fault].join()
    const rank = (seen.get(kind) ?? 0) + 1
    seen.set(kind, rank)
    return { job, rank }
  })
  return ranked.sort((a, b) => a.rank - b.rank).map(({ job }) => job)
}

/**
 * Injects so many faults, in this order: threads take turns otherwise in each run, so one that meets no such call is followed by the next.
 * `toFirst`: ends with the first complaint, where one is enough to know.
 */
export async function sweep(
  jobs: readonly Job[],
  wanted: number,
  program: Program,
  width: number,
  toFirst: boolean,
): Promise<CallResult[]> {
  const results: CallResult[] = []
  const queue = [...jobs]
  let begun = 0
  const lane = async (index: number): Promise<void> => {
    const root = join(program.scratch, `lane-${index}`)
    mkdirSync(root, { recursive: true })
    for (let job = queue.shift(); job !== undefined && begun < wanted; job = queue.shift()) {
      begun += 1
      const wrong = await inject(job, program, root)
      if (wrong === undefined) begun -= 1
      results.push({ job, wrong })
      if (toFirst && wrong !== undefined && wrong.length > 0) queue.length = 0
    }
  }
  await Promise.all(Array.from({ length: width }, (_, index) => lane(index)))
  return results
}

async function inject(job: Job, program: Program, root: string): Promise<string[] | undefined> {
  const { scenario } = job.prepared
  const { site, fault } = job
  const what = fault === 'SIGKILL' ? 'signal=SIGKILL' : `error=${fault}`
  const where = site.file === undefined ? [] : ['-P', join(placeOf(root), site.file)]
  for (let aim = 0; aim < aims; aim++) {
    await scenario.prepare(root)
    const run = await traced(program, scenario.args(root), {
      strace: [...where, '-e', `trace=${site.call}`, '-e', `inject=${site.call}:${what}:when=${site.number}`],
      thread: site.thread,
      env: scenario.env ?? {},
      input: scenario.input ?? '',
    })
    if (!isHit(run, job)) continue
    const wrong = await judge(job, run, root, program.executable)
    if (wrong.length > 0) process.stderr.write(`${told(job, wrong, run)}\n`)
    return wrong
  }
  return undefined
}

function isHit({ log }: Traced, { site, fault }: Job): boolean {
  const lines = log.split('\n').filter((line) => line.startsWith(`${site.call}(`))
  const hit = fault === 'SIGKILL' ? lines.at(-1) : lines.find((line) => line.includes('(INJECTED)'))
  if (hit === undefined) return false
  return fault !== 'SIGKILL' || log.includes('+++ killed by SIGKILL')
}

/** The faults, with all output of the program and strace. */
function told(job: Job, wrong: readonly string[], { code, signal, stdout, stderr, log }: Traced): string {
  const lines = [...wrong, `exit ${code ?? signal}`, `stdout: ${stdout}`, `stderr: ${stderr}`, `strace: ${log}`]
  return [describe(job), ...lines].join('\n').trimEnd().replaceAll('\n', '\n  ')
}

export function describe({ prepared, site, fault }: Job): string {
  return `${prepared.scenario.name}: ${fault} at ${nameOf(site)}`
}
