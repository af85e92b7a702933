/** A history on real file systems: the power is lost in one instant of its last publication, and again after the next run. */
import { Random } from '../../random.js'
import { countOutcomes, type Explored, judgeCut, nothingYet, recover } from './explored.js'
import type { History } from './generate.js'
import { faultsOfCall, mayLeadElsewhere } from './judge.js'
import type { Publication } from './operations.js'
import { noteAnswer, playPast } from './play.js'
import type { RealDisks } from './real-disks.js'
import { RealGround } from './real-ground.js'

/** More calls than most publications of a history make: a cut beyond the last call comes after the answer. */
const mostCalls = 140

export async function exploreOnReal(history: History, seed: number, disks: RealDisks): Promise<Explored> {
  const random = new Random(seed)
  const explored = nothingYet()
  const ground = new RealGround(disks)
  ground.begin()
  const { knowledge, faults } = await playPast(ground, history)
  explored.faults.push(...faults)
  if (faults.length > 0) return explored
  const last = history[history.length - 1] as Publication
  if (mayLeadElsewhere(last, ground.look())) return explored
  const loss = random.pick(disks.losses)
  ground.cut = { before: random.below(3) === 0 ? Infinity : 1 + random.below(mostCalls), lose: () => disks.lose(loss) }
  const before = ground.look()
  const answer = (await ground.publish(last)) ?? { outcomes: [], told: '' }
  countOutcomes(explored, answer)
  const isOver = !ground.isCut
  const after = isOver ? ground.look() : before
  if (isOver) {
    explored.faults.push(...faultsOfCall(last, { before, meanwhile: answer.meanwhile ?? before, after }, answer))
    disks.lose(loss)
  } else if (last.meanwhile) knowledge.changedBy(last.meanwhile)
  // An answer after the shutdown of the file system is as true as one before; where the kernel went on, it came later.
  const isSaid = isOver || loss === 'shutdown'
  if (isSaid) noteAnswer(knowledge, last, answer, after)
  const allowed = knowledge.allowed(before, isSaid ? undefined : last, new Set())
  ground.reboot()
  judgeCut(explored, ground.look(), knowledge, allowed)
  if (explored.faults.length > 0) return explored
  const known = await recover(ground, last, random, explored)
  if (explored.faults.length > 0) return explored
  const allowedThen = known.allowed(ground.look(), undefined, new Set())
  disks.lose(random.pick(disks.losses))
  ground.reboot()
  judgeCut(explored, ground.look(), known, allowedThen)
  return explored
}
