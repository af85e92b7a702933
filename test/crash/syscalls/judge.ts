/** Whether the program kept its word under one injected fault. */
import { join } from 'node:path'
import { placeOf, type Scenario } from './scenarios.js'
import type { Site } from './sites.js'
import { leftovers, snapshot } from './snapshot.js'
import type { Traced } from './traced.js'

export type Fault = 'SIGKILL' | 'EIO' | 'ENOSPC' | 'EDQUOT' | 'EROFS' | 'EINTR' | 'EMFILE'

/** One scenario, with the calls of a run without faults and what stands before and after it. */
export interface Prepared {
  readonly scenario: Scenario
  readonly sites: readonly Site[]
  readonly old: readonly (string | undefined)[]
  readonly new: readonly (string | undefined)[]
}

export interface Job {
  readonly prepared: Prepared
  readonly site: Site
  readonly fault: Fault
}

/** What the program said of one target. */
interface Answer {
  readonly outcome?: string
  readonly published?: boolean
  readonly code?: string
  readonly reason?: string
  readonly message?: string
}

export function states(scenario: Scenario, root: string): (string | undefined)[] {
  return scenario.targets.map((target) => snapshot(join(placeOf(root), target)))
}

/** Calls whose failure may not be overlooked: content, attributes and durability of what is published depend on them. */
const essential = new Set(['write', 'fchmod', 'fchown', 'sync_file_range', 'fsync', 'io_submit', 'io_getevents'])

/** Where in the run a call lies. */
function phase(sites: readonly Site[], site: Site): 'staging' | 'uncommitted' | 'committed' {
  const at = sites.indexOf(site)
  const swap = sites.findIndex(({ call }) => call === 'renameat2' || call === 'rename')
  const committed = sites.findIndex(
    ({ call, subject }, index) => index > swap && call === 'write' && subject.endsWith('RECORD'),
  )
  // The exchange itself may fail, or be done.
  if (at <= swap) return 'staging'
  return at < committed ? 'uncommitted' : 'committed'
}

/** Complaints; none is as it should be. */
export async function judge(job: Job, run: Traced, root: string, executable: string): Promise<string[]> {
  const { prepared, fault, site } = job
  const { scenario } = prepared
  const wrong: string[] = []
  const found = states(scenario, root)
  const isNew = found.map((state, index) => state === prepared.new[index])
  const isOld = found.map((state, index) => state === prepared.old[index])
  scenario.targets.forEach((target, index) => {
    if (!isNew[index] && !isOld[index]) {
      wrong.push(`${target} is neither old nor new: ${JSON.stringify(found[index])}`)
    }
  })
  const when = phase(prepared.sites, site)
  const single = scenario.targets.length === 1
  if (fault === 'SIGKILL') {
    if (run.signal !== 'SIGKILL' && run.code !== 0) wrong.push(`killed, it exits with ${run.code}`)
  } else {
    wrong.push(...truth(run, fault, isOld, isNew))
    const failed = run.code !== 0
    const must = fault !== 'EINTR' && single && (essential.has(site.call) || when === 'uncommitted')
    if (must && site.writes && when === 'staging' && run.code !== 1) wrong.push(`exit ${run.code} instead of 1`)
    if (must && site.writes && when === 'uncommitted' && run.code !== 3) wrong.push(`exit ${run.code} instead of 3`)
    if (when === 'committed' && single && failed && site.writes) wrong.push(`exit ${run.code} once all was durable`)
    if (fault !== 'EINTR' && site.call === 'fsync') wrong.push(...syncedAgain(run.log))
  }
  wrong.push(...(await converges(job, run, root, executable, isNew)))
  return wrong
}

/** Exit code and message, against what is there. */
function truth(run: Traced, fault: Fault, isOld: readonly boolean[], isNew: readonly boolean[]): string[] {
  const wrong: string[] = []
  if (run.code === null || ![0, 1, 3].includes(run.code)) return [`exit ${run.code ?? run.signal}: ${run.stderr}`]
  const answers = answersOf(run.stdout)
  if (answers === undefined) return [`exit ${run.code} without an answer: ${run.stdout}${run.stderr}`]
  answers.forEach((answer, index) => {
    const failed = answer.outcome === undefined || answer.outcome === 'failed'
    const unknown = answer.published === true || answer.reason === 'DurabilityUnknown'
    if (!failed && !isNew[index]) wrong.push(`says ${answer.outcome ?? ''}, and is not`)
    if (failed && unknown && !isNew[index]) wrong.push('says that it is visible, and it is not')
    if (failed && !unknown && !isOld[index]) wrong.push('says that it is unchanged, and it is not')
    const message = answer.message ?? ''
    if (failed && !unknown && !/as it was|nothing was changed|left alone/.test(message)) {
      wrong.push(`does not say what became of it: ${message}`)
    }
    if (failed && unknown && !/not known to survive/.test(message)) wrong.push(`does not say: ${message}`)
    if (failed && !message.includes(fault)) wrong.push(`does not name ${fault}: ${message}`)
  })
  const unknown = answers.some(({ published, reason }) => published === true || reason === 'DurabilityUnknown')
  const failed = answers.some(({ outcome }) => outcome === undefined || outcome === 'failed')
  const code = unknown ? 3 : failed ? 1 : 0
  if (run.code !== code) wrong.push(`exit ${run.code}, and tells of ${code}`)
  return wrong
}

function answersOf(stdout: string): Answer[] | undefined {
  try {
    const document = JSON.parse(stdout) as Answer & { error?: Answer; directories?: Answer[] }
    return document.directories ?? [document.error ?? document]
  } catch {
    return undefined
  }
}

/** A failed fsync is not asked again: the kernel has marked the pages clean, and would answer 0. */
function syncedAgain(log: string): string[] {
  const paths = [...log.matchAll(/fsync\(\d+<([^>]*)>\)\s+= (-1)?.*/g)].map(([, path = '', failed]) => ({
    path,
    failed: failed !== undefined,
  }))
  const first = paths.findIndex(({ failed }) => failed)
  const again = first >= 0 && paths.slice(first + 1).some(({ path }) => path === paths[first]?.path)
  return again ? [`${paths[first]?.path ?? ''} is synced again after its fsync failed`] : []
}

async function converges(
  { prepared, site, fault }: Job,
  run: Traced,
  root: string,
  executable: string,
  wasNew: readonly boolean[],
): Promise<string[]> {
  const { scenario } = prepared
  const wrong: string[] = []
  let outcomes: string[]
  try {
    outcomes = await scenario.again(root, executable)
  } catch (error) {
    return [`the next run fails: ${String(error)}`]
  }
  const after = states(scenario, root)
  if (after.some((state, index) => state !== prepared.new[index])) wrong.push('the next run does not complete it')
  wrong.push(...leftovers(placeOf(root)).map((name) => `the next run leaves a ${name}`))
  // Visible, but perhaps not durable: equal content on the disk is no reason to be content.
  const unknown = fault === 'SIGKILL' ? phase(prepared.sites, site) === 'uncommitted' : run.code === 3
  if (unknown && scenario.targets.length === 1 && wasNew[0] && outcomes[0] === 'unchanged') {
    wrong.push('the next run calls it unchanged, and nobody knows whether it is durable')
  }
  return wrong
}
