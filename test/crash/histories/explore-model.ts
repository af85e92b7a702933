/** A history on the model disk: its last publication is cut off at its instants, in many ways each, and then recovered from. */
import { Random } from '../../random.js'
import { eachChoice } from '../model/choices.js'
import type { ModelDisk } from '../model/model-disk.js'
import { powerCut } from '../model/power-cut.js'
import { contentOf, expectedTexts, visibleText } from './contents.js'
import { countOutcomes, type Explored, judgeCut, nothingYet, recover } from './explored.js'
import { type History, initialDisk } from './generate.js'
import { type Answer, mayLeadElsewhere } from './judge.js'
import type { Allowed } from './judge-cut.js'
import { hasTwoPaths, type Knowledge } from './knowledge.js'
import { ModelGround } from './model-ground.js'
import type { Publication } from './operations.js'
import { noteAnswer, playPast, judgedCall } from './play.js'
import { type Snapshot, snapshotOfModel } from './snapshot.js'

/** The extent of the search in one history. */
export interface Effort {
  /** Instants of the last publication, drawn, and crash states of each. */
  readonly instants: number
  readonly states: number
  /** Crash states after a success. */
  readonly after: number
  /** Of the crash states, one in so many is recovered from. */
  readonly recovered: number
}

/** Everything there is to know of a history follows from it and from the seed. */
export async function exploreOnModel(history: History, seed: number, effort: Effort): Promise<Explored> {
  const random = new Random(seed)
  const explored = nothingYet()
  const ground = new ModelGround(initialDisk())
  const { knowledge, faults } = await playPast(ground, history)
  explored.faults.push(...faults)
  const last = history[history.length - 1] as Publication
  if (mayLeadElsewhere(last, ground.look())) return explored
  const start = ground.disk
  const before = ground.look()
  const instants = [start.fork()]
  start.changed = () => instants.push(start.fork())
  const played = await judgedCall(ground, last)
  start.changed = undefined
  explored.faults.push(...played.faults)
  countOutcomes(explored, played.answer)
  // Another program's change meanwhile is unsynced, too.
  const aim = aimOf(last, played.answer, ground.look())
  const under = last.meanwhile ? knowledge.copy() : knowledge
  if (last.meanwhile) under.changedBy(last.meanwhile)
  for (const instant of drawn(instants, effort.instants, random)) {
    if (explored.faults.length > 0) return explored
    const allowed = under.allowed(before, aim, newlyVisible(aim, before, snapshotOfModel(instant)))
    for (const survivor of cut(explored, random, instant, effort.states, under, allowed)) {
      if (explored.faults.length === 0 && random.below(effort.recovered) === 0) {
        await goOn(survivor, last, random, effort, explored)
      }
    }
  }
  noteAnswer(knowledge, last, played.answer, ground.look())
  cut(explored, random, ground.disk, effort.after, knowledge)
  return explored
}

function drawn<Item>(items: readonly Item[], count: number, random: Random): readonly Item[] {
  if (items.length <= count) return items
  return Array.from({ length: count }, () => random.pick(items))
}

/** The aim of a call: only its answer tells which content a rollback went back to. */
function aimOf(publication: Publication, { outcomes }: Answer, after: Snapshot): Publication {
  const [target = ''] = publication.targets
  const [outcome] = outcomes
  if (publication.content !== 'earlier' || outcome === undefined) return publication
  if ('error' in outcome && !outcome.error.published) return { ...publication, targets: [] }
  return { ...publication, content: contentOf(target, visibleText(after, target)) ?? 'earlier' }
}

/** Targets at which the new content has become visible by this call. */
function newlyVisible({ targets, content }: Publication, before: Snapshot, now: Snapshot): Set<string> {
  return new Set(
    targets.filter((target) => {
      const text = visibleText(now, target)
      return expectedTexts(target, content).includes(text) && visibleText(before, target) !== text
    }),
  )
}

/** Cuts the power in so many ways, and judges each disk that is left. */
function cut(
  explored: Explored,
  random: Random,
  disk: ModelDisk,
  states: number,
  knowledge: Knowledge,
  allowed: readonly Allowed[] = knowledge.allowed(snapshotOfModel(disk), undefined, new Set()),
): ModelDisk[] {
  const survivors: ModelDisk[] = []
  eachChoice(states, random, (choose) => {
    const survivor = powerCut(disk, choose)
    const snapshot = snapshotOfModel(survivor)
    judgeCut(explored, snapshot, knowledge, allowed)
    // No file system that holdfast calls proven gives a directory two names, as two halves of a rename do here.
    if (!hasTwoPaths(snapshot)) survivors.push(survivor)
  })
  return survivors
}

/** The next run has the same to publish, or something else; and then the power is cut again. */
async function goOn(
  survivor: ModelDisk,
  last: Publication,
  random: Random,
  effort: Effort,
  explored: Explored,
): Promise<void> {
  const ground = new ModelGround(survivor)
  const knowledge = await recover(ground, last, random, explored)
  if (explored.faults.length === 0) cut(explored, random, ground.disk, effort.after, knowledge)
}
