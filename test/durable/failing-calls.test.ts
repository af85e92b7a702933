/*
 * Every call of the scenes marked so fails, with each errno that it can answer. The rules hold all the same, the answer is true of the
 * disk, with the reason that the table of errors has, and the next run completes. It completes, too, after the death of a process at any
 * of its changes, and readers of one target find the old content then, or the new one.
 */
import t from 'tap'
import { errorsIn, partsOf } from './calls/judge-answers.js'
import { faultsOf } from './calls/faults.js'
import { diskFor, play, type Played } from './calls/play.js'
import { differencesOf, saidOf, targetsOn, viewOf } from './calls/readers.js'
import type { ModelDisk } from '../crash/model/model-disk.js'
import { breachOf, ruleNames, shown } from './calls/rules.js'
import type { Scene } from './calls/scene.js'
import { scenes } from './calls/scenes.js'

/** Runs it again, without a failure, on what the failure has left. */
async function breachOfNextRun(failed: Played, undisturbed: Played): Promise<string | undefined> {
  const rule = 'the next run completes'
  const { scene } = failed
  if (scene.exemptFailing?.[rule] !== undefined) return undefined
  const next = await play(scene, { disk: failed.end.fork() })
  const wanted = viewOf(undisturbed.end)
  const wasDone = differencesOf(viewOf(failed.end), wanted).length === 0
  const expected = new Set(partsOf(undisturbed.answer).flatMap(codesOf))
  // A second removal of the same entry fails so.
  if (wasDone) expected.add('ENOENT')
  const strange = partsOf(next.answer).find((part) => codesOf(part).some((code) => !expected.has(code)))
  const [other] = differencesOf(wanted, viewOf(next.end))
  const what = strange
    ? `it answers ${strange instanceof Error ? String(strange) : JSON.stringify(strange)}`
    : other && `${other} is ${viewOf(next.end).get(other) ?? 'gone'}, and not ${wanted.get(other) ?? 'gone'}`
  if (what !== undefined) return shown(rule, failed, { what })
  // What a failed hold leaves goes with the next publication.
  const publishes = partsOf(next.answer).some((part) => 'outcome' in part)
  for (const one of [
    'each descriptor is closed',
    ...(publishes ? (['nothing staged is left'] as const) : []),
  ] as const) {
    const breach = await breachOf(one, { ...next, start: failed.start })
    if (breach !== undefined && scene.exempt?.[one] === undefined) return `${rule}: ${breach}`
  }
  return undefined
}

/** Earlier contents outlive a failure and a death: each content is whole, and the replaced content is there beside the new one. */
async function faultOfStopped({ end, scene, user }: Played, undisturbed: Played): Promise<string | undefined> {
  for (const path of targetsOn(end)) {
    const [found, wanted] = [await saidOf(end, path, user), await saidOf(undisturbed.end, path, user)].map(
      ({ past }) => past,
    )
    if (!Array.isArray(found) || !Array.isArray(wanted)) continue
    const damaged = (found as Past).slice(1).find(({ state }) => state === 'damaged')
    if (damaged) return `the earlier content ${damaged.sequence} of ${path} is damaged`
    const isNew = differencesOf(readIn(undisturbed.end), readIn(end)).length === 0
    const lost = (wanted as Past).find(
      ({ sequence, state }) => state === 'whole' && !(found as Past).some((one) => one.sequence === sequence),
    )
    if (isNew && lost) return `the earlier content ${lost.sequence} of ${path} is gone`
  }
  return scene.stopped?.(end)
}
type Past = readonly { sequence: number; state: string }[]

const codesOf = (part: object): string[] =>
  part instanceof Error ? ['code' in part ? String(part.code) : part.name] : []

async function breachesOf(scene: Scene): Promise<{ tried: number; breaches: string[] }> {
  const undisturbed = await play(scene)
  const faults = faultsOf(undisturbed.calls)
  const breaches: string[] = []
  for (const fault of faults) {
    const failed = await play(scene, { fault, undisturbed })
    for (const rule of ruleNames) {
      if (scene.exempt?.[rule] !== undefined || scene.exemptFailing?.[rule] !== undefined) continue
      const breach = await breachOf(rule, failed)
      if (breach !== undefined) breaches.push(breach)
    }
    const breach = await breachOfNextRun(failed, undisturbed)
    if (breach !== undefined) breaches.push(breach)
  }
  return { tried: faults.length, breaches }
}

/** Where readers of one target must find the old content or the new one, whole: of the symlink form they go through `..data`. */
function readIn(disk: ModelDisk): Map<string, string> {
  const view = viewOf(disk)
  const through = [...view].filter(([path]) => path.includes('/..data'))
  return through.length > 0 ? new Map(through) : view
}

const publishesOne = ({ ends = '' }: Scene): boolean => /^(created|replaced|unchanged)$/.test(ends)

async function breachesOfDeaths(scene: Scene): Promise<{ tried: number; breaches: string[] }> {
  const undisturbed = await play(scene)
  const disk = await diskFor(scene)
  const deaths: { disk: ModelDisk; after: string }[] = []
  disk.changed = (after) => void deaths.push({ disk: disk.fork(), after })
  await play(scene, { disk })
  const breaches: string[] = []
  for (const { disk: end, after } of deaths) {
    const died = { ...undisturbed, end }
    const halves = [undisturbed.start, undisturbed.end].map((whole) => differencesOf(readIn(whole), readIn(end)))
    if (publishesOne(scene) && halves.every((other) => other.length > 0))
      breaches.push(`killed after ${after}: ${halves.join(' and ')} are neither old nor new`)
    const left = await faultOfStopped(died, undisturbed)
    if (left !== undefined) breaches.push(`killed after ${after}: ${left}`)
    const breach = await breachOfNextRun(died, undisturbed)
    if (breach !== undefined) breaches.push(`killed after ${after}: ${breach}`)
  }
  return { tried: deaths.length, breaches }
}

/** One error suffices to stop the steps of which a power cut or a death may leave a part. */
async function breachesOfStops(scene: Scene): Promise<{ tried: number; breaches: string[] }> {
  const undisturbed = await play(scene)
  const stops = undisturbed.calls.filter(({ name }) => /^(create|copy|read$|startWriteOut|sync|rename)/.test(name))
  const breaches: string[] = []
  for (const { index } of stops) {
    const failed = await play(scene, { fault: { index, code: 'EIO' }, undisturbed })
    const isAcknowledged = errorsIn(failed.answer).length === 0
    const left =
      (await faultOfStopped(failed, undisturbed)) ??
      (isAcknowledged ? await scene.promises?.(failed.end, undefined) : undefined)
    if (left !== undefined) breaches.push(shown('what a failure has left', failed, { what: left }))
    const breach = await breachOfNextRun(failed, undisturbed)
    if (breach !== undefined) breaches.push(breach)
  }
  return { tried: stops.length, breaches }
}

for (const scene of scenes.filter(({ fails, dies }) => (process.env['ONLYDIES'] ? dies : (fails ?? dies)))) {
  await t.test(`a process dies at each change of "${scene.name}"`, async (t) => {
    const { tried, breaches } = await breachesOfDeaths(scene)
    t.comment(`${tried} deaths`)
    t.equal(breaches[0], undefined, `${breaches.length} breaches`)
  })

  await t.test(`one call of "${scene.name}" fails`, async (t) => {
    const { tried, breaches } = scene.fails ? await breachesOf(scene) : await breachesOfStops(scene)
    t.ok(tried > 0, `${tried} calls and errnos`)
    t.equal(breaches[0], undefined, `${breaches.length} breaches`)
  })
}
