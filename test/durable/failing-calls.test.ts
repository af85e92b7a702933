/*
 * Every call of the scenes marked so fails, with each errno that it can answer. The rules hold all the same, the answer is true of the
 * disk, with the reason that the table of errors has, and the next run completes. It completes, too, after a death of the process or a
 * power cut at any of its changes, and readers of one target find the old content then, or the new one. An answer of that next run
 * outlives a power cut, also where its predecessor left changes unsynced. `npm test` draws a sixth of these plays, `npm run test:crash` has all.
 */
import t from 'tap'
import { eachChoice } from '../crash/model/choices.js'
import { powerCut } from '../crash/model/power-cut.js'
import { Random } from '../random.js'
import { errorsIn, partsOf } from './calls/judge-answers.js'
import { faultsOf, playEach, playsDrawn } from './calls/faults.js'
import { stateOf } from './calls/orders.js'
import { diskFor, play, type Played } from './calls/play.js'
import { differencesOf, saidOf, targetsOn, viewOf } from './calls/readers.js'
import { textOf, wholeOf } from '../crash/model/content.js'
import { type ModelDisk, rootInode } from '../crash/model/model-disk.js'
import type { Fault } from './calls/recorder.js'
import { breachesOfRules, faultOfWhole, shown, wholeIn } from './calls/rules.js'
import type { Scene } from './calls/scene.js'
import { scenes } from './calls/scenes.js'

/** What was found of the disks of one scene from which a next run began. */
type Begun = Map<string, Promise<string | undefined>>

/** Runs it again, without a failure, on what the failure has left: once for all that have left the same. */
function breachOfNextRun(failed: Played, undisturbed: Played, begun: Begun): Promise<string | undefined> {
  const left = `${failed.fault === undefined ? 'stopped' : 'failed'} ${wholeOf(failed.end)}`
  const known = begun.get(left) ?? nextRun(failed, undisturbed)
  begun.set(left, known)
  return known
}

async function nextRun(failed: Played, undisturbed: Played): Promise<string | undefined> {
  const rule = 'the next run completes'
  const { scene } = failed
  if (scene.exemptFailing?.[rule] !== undefined) return undefined
  const next = await play(scene, { disk: failed.end.fork(), undisturbed })
  const wanted = viewOf(undisturbed.end)
  const wasDone = differencesOf(viewOf(failed.end), wanted).length === 0
  const expected = new Set(partsOf(undisturbed.answer).flatMap(codesOf))
  // A second removal of the same entry fails so.
  if (wasDone) expected.add('ENOENT')
  const strange = partsOf(next.answer).find((part) => codesOf(part).some((code) => !expected.has(code)))
  // An inode that a power cut has zeroed has lost its mode: no program can tell it from a foreign one.
  const [other] = differencesOf(wanted, viewOf(next.end)).filter((path) => viewOf(next.end).get(path) !== 'd 0 0:0  ')
  const what = strange
    ? `it answers ${strange instanceof Error ? String(strange) : JSON.stringify(strange)}`
    : other && `${other} is ${viewOf(next.end).get(other) ?? 'gone'}, and not ${wanted.get(other) ?? 'gone'}`
  if (what !== undefined) return shown(rule, failed, { what })
  // What a failed hold leaves goes with the next publication.
  const publishes = partsOf(next.answer).some((part) => 'outcome' in part)
  const breaches = await breachesOfRules({ ...next, start: failed.start }, [
    'each descriptor is closed',
    // Of a failure, the answer of the failed run is judged.
    ...(failed.fault === undefined ? (['the answer outlives a power cut'] as const) : []),
    ...(publishes ? (['nothing staged is left'] as const) : []),
  ])
  const breach = breaches.find((one) => one !== undefined)
  return breach && `${rule}: ${breach}`
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

/** Where readers of one target must find the old content or the new one, whole: of the symlink form they go through `..data`. */
function readIn(disk: ModelDisk): Map<string, string> {
  const view = viewOf(disk)
  const through = [...view].filter(([path]) => path.includes('/..data'))
  return through.length > 0 ? new Map(through) : view
}

const publishesOne = ({ ends = '' }: Scene): boolean => /^(created|replaced|unchanged)$/.test(ends)

const neverApart = 'what readers see is never taken apart'

/** Each target is whole, also where the others are not done; a scene at one target is all as it was, or all done. */
async function halfDone({ end, start, user, scene }: Played, undisturbed: Played): Promise<string | undefined> {
  const known = wholeIn(undisturbed)
  const targets = scene.exempt?.[neverApart] === undefined ? targetsOn(undisturbed.end, targetsOn(start)) : []
  const torn = targets.map((path) => faultOfWhole(end, path, known)).find((fault) => fault !== undefined)
  if (torn !== undefined) return torn
  const disks = [start, undisturbed.end]
  const halves = disks.map((whole) => differencesOf(readIn(whole), readIn(end)))
  if (publishesOne(scene) && halves.every((other) => other.length > 0))
    return `${halves.join(' and ')} are neither old nor new`
  if (!scene.atOnce) return undefined
  const [now, ...said] = await Promise.all([end, ...disks].map((disk) => stateOf(disk, user)))
  return said.some((one) => one === now) ? undefined : `readers are told\n  ${now}\nand not\n  ${said.join('\nor\n  ')}`
}

interface Stop {
  readonly end: ModelDisk
  readonly how: string
}

/** Disks that the power cuts of one instant leave, at most: all that is unsynced, none of it, and some of it. */
const cutsOfAnInstant = 3

/** Each disk that a death, or a power cut, leaves at a change of the scene. */
async function stopsOf(scene: Scene): Promise<Stop[]> {
  const disk = await diskFor(scene)
  const stops: Stop[] = []
  const random = new Random(1)
  disk.changed = (after) => {
    const met = disk.fork()
    stops.push({ end: met, how: `killed after ${after}` })
    eachChoice(cutsOfAnInstant, random, (choose) => {
      stops.push({ end: powerCut(met, choose), how: `the power is cut after ${after}` })
    })
  }
  await play(scene, { disk })
  const seen = new Set<string>()
  return stops.filter(({ end, how }) => {
    const key = (how.startsWith('killed') ? `${stops.length} ` : '') + textOf(end, end.inode(rootInode))
    return !seen.has(key) && seen.add(key)
  })
}

/** One error suffices to stop the steps of which a power cut or a death may leave a part. */
function errorsOf(calls: Played['calls']): Fault[] {
  const stopping = calls.filter(({ name }) => /^(create|copy|read$|startWriteOut|sync|rename)/.test(name))
  return stopping.map(({ index }) => ({ index, code: 'EIO' }))
}

async function breachOfLeft(failed: Played, undisturbed: Played): Promise<string | undefined> {
  const isAcknowledged = errorsIn(failed.answer).length === 0
  const what =
    (await faultOfStopped(failed, undisturbed)) ??
    (isAcknowledged ? await failed.scene.promises?.(failed.end, undefined) : undefined)
  return what === undefined ? undefined : shown('what a failure has left', failed, { what })
}

t.comment(playsDrawn)

for (const scene of scenes.filter(({ fails, dies }) => fails ?? dies)) {
  await t.test(`a process dies, or the power is cut, at each change of "${scene.name}"`, async (t) => {
    const undisturbed = await play(scene)
    const begun: Begun = new Map()
    await playEach(t, scene, await stopsOf(scene), async ({ end, how }) => {
      const stopped = { ...undisturbed, end }
      const breaches = [
        await halfDone(stopped, undisturbed),
        await faultOfStopped(stopped, undisturbed),
        await breachOfNextRun(stopped, undisturbed, begun),
      ]
      return breaches.map((breach) => breach && `${how}: ${breach}`)
    })
  })

  await t.test(`one call of "${scene.name}" fails`, async (t) => {
    const undisturbed = await play(scene)
    const begun: Begun = new Map()
    const faults = (scene.fails ? faultsOf : errorsOf)(undisturbed.calls)
    await playEach(t, scene, faults, async (fault) => {
      const failed = await play(scene, { fault, undisturbed })
      const breaches = scene.fails ? await breachesOfRules(failed) : [await breachOfLeft(failed, undisturbed)]
      return [...breaches, await breachOfNextRun(failed, undisturbed, begun)]
    })
  })
}
