/** Whether the program kept its word under one injected fault. */
import { join } from 'node:path'
import { faultOfAnswer } from '../judge/answers.js'
import { faultOfContent } from '../judge/contents.js'
import { contentAt, leftBelow } from '../judge/directory.js'
import { placeOf, type Scenario } from './scene.js'
import { exchangeIn, type Site } from './sites.js'
import type { Traced } from './traced.js'

export type Fault = 'SIGKILL' | 'EIO' | 'ENOSPC' | 'EDQUOT' | 'EUCLEAN' | 'EROFS' | 'EINTR' | 'EMFILE'

/** One scenario, with the calls of a run without faults and what stands before and after it. */
export interface Prepared {
  readonly scenario: Scenario
  readonly sites: readonly Site[]
  readonly old: readonly string[]
  readonly new: readonly string[]
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

/** What each target holds; '' for nothing. */
export async function states(scenario: Scenario, root: string): Promise<string[]> {
  const more = (await scenario.look?.(root)) ?? []
  return scenario.targets.map((target) => [contentAt(join(placeOf(root), target)), more].flat().join('\n'))
}

/** Calls whose failure the program must not overlook: content, attributes and durability of a target depend on them. */
const essential = new Set(['write', 'fchmod', 'fchown', 'sync_file_range', 'fsync', 'io_submit', 'io_getevents'])

/** Where in the run a call lies. */
function phase({ sites }: Prepared, site: Site): 'staging' | 'uncommitted' | 'committed' {
  const at = sites.indexOf(site)
  const swap = exchangeIn(sites)
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
  const found = await states(scenario, root)
  const isNew = found.map((state, index) => state === prepared.new[index])
  const isOld = found.map((state, index) => state === prepared.old[index])
  scenario.targets.forEach((target, index) => {
    const [old = '', now = ''] = [prepared.old[index], prepared.new[index]]
    const allowed = new Map(Object.entries({ old, new: now }))
    wrong.push(...[faultOfContent(target, found[index] ?? '', allowed) ?? []].flat())
  })
  const stays = [prepared.old, prepared.new].every((all) => all.some((state) => state !== ''))
  if (stays && found.every((state) => state === '')) wrong.push('nothing is there any more')
  if (fault === 'SIGKILL') {
    if (run.signal !== 'SIGKILL' && run.code !== 0) wrong.push(`killed, it exits with ${run.code}`)
  } else {
    if (scenario.hasPhases === false) wrong.push(...ending(run, fault, isOld, isNew))
    else wrong.push(...truth(run, fault, isOld, isNew), ...exitCode(job, run.code))
    if (fault !== 'EINTR' && site.call === 'fsync') wrong.push(...syncedAgain(run.log))
  }
  wrong.push(...(await converges(job, run, root, executable, isNew)))
  return wrong
}

/** Whether the code fits the step that failed. */
function exitCode({ prepared, site, fault }: Job, code: number | null): string[] {
  const when = phase(prepared, site)
  if (prepared.scenario.targets.length > 1 || !site.writes) return []
  const must = fault !== 'EINTR' && (essential.has(site.call) || when === 'uncommitted')
  if (must && when === 'staging' && code !== 1) return [`exit ${code} instead of 1`]
  if (must && when === 'uncommitted' && code !== 3) return [`exit ${code} instead of 3`]
  return when === 'committed' && code !== 0 ? [`exit ${code} once all was durable`] : []
}

/** Success, or a named failure, with the state that it leaves. */
function ending(
  { code, signal, stdout, stderr }: Traced,
  fault: Fault,
  isOld: readonly boolean[],
  isNew: readonly boolean[],
): string[] {
  if (code === 0) return isNew.every(Boolean) ? [] : [`exit 0, and it is not done: ${stdout}`]
  const [{ message = '' } = {}] = answersOf(stdout) ?? []
  if (code !== 1 && code !== 3) return [`exit ${code ?? signal}: ${stderr}`]
  const saysUnchanged = isOld.length === 1 && /as it was|nothing was changed/.test(message)
  if (saysUnchanged && !isOld[0]) return [`says that it is unchanged, and it is not: ${message}`]
  // A publication that could not be marked as durable is whole: why it could not was said then.
  const said = /not known to be durable yet/.test(message) ? `${message}\n${stderr}` : message
  return said.includes(fault) ? [] : [`does not name ${fault}: ${message}`]
}

/** Exit code and message, against the disk. */
function truth(run: Traced, fault: Fault, isOld: readonly boolean[], isNew: readonly boolean[]): string[] {
  const wrong: string[] = []
  if (run.code === null || ![0, 1, 3].includes(run.code)) return [`exit ${run.code ?? run.signal}: ${run.stderr}`]
  const answers = answersOf(run.stdout)
  if (answers === undefined) return [`exit ${run.code} without an answer: ${run.stdout}${run.stderr}`]
  answers.forEach((answer, index) => {
    const failed = answer.outcome === undefined || answer.outcome === 'failed'
    const unknown = answer.published === true || answer.reason === 'DurabilityUnknown'
    const message = answer.message ?? ''
    // The old path of a move stays until the message says that it follows.
    const waits = answer.outcome === 'moving' && !/ \((both|draining)\): /.test(message)
    const said = failed ? { error: { published: unknown, message } } : { outcome: answer.outcome ?? '' }
    const is = { isNew: isNew[index] === true, isOld: isOld[index] === true, shown: 'something else' }
    const untrue = faultOfAnswer(said, waits ? { ...is, isNew: is.isOld } : is)
    if (untrue !== undefined) wrong.push(`${untrue}: ${message}`)
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
  const after = await states(scenario, root)
  if (after.some((state, index) => state !== prepared.new[index])) wrong.push('the next run does not complete it')
  // Which earlier contents stay, lives.ts says.
  const may = new Map(scenario.targets.map((target) => [target, Infinity]))
  wrong.push(...leftBelow(placeOf(root), may).map((left) => `after the next run: ${left}`))
  wrong.push(...((await scenario.beside?.(root)) ?? []))
  // Visible, but perhaps not durable: equal content on the disk is no reason to be content.
  const unknown = fault === 'SIGKILL' ? phase(prepared, site) === 'uncommitted' : run.code === 3
  if (
    unknown &&
    scenario.hasPhases !== false &&
    scenario.targets.length === 1 &&
    wasNew[0] &&
    outcomes[0] === 'unchanged'
  ) {
    wrong.push('the next run calls it unchanged, and nobody knows whether it is durable')
  }
  return wrong
}
