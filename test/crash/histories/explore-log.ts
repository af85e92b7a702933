/** A history on disks that are logged: its last publication is cut off at instants of that log, and each disk then recovered from. */
import { messageOf } from '../../../src/errors.js'
import type { LogRecord } from '../../disk/write-log.js'
import { Random } from '../../random.js'
import { countOutcomes, type Explored, judgeCut, nothingYet, recover } from './explored.js'
import type { History } from './generate.js'
import { faultsOfCall, mayLeadElsewhere } from './judge.js'
import { drawCuts, type LoggedDisks, type PairCut, type ReplayedDisks } from './logged-disks.js'
import type { Publication } from './operations.js'
import { noteAnswer, playPast } from './play.js'
import { RealGround } from './real-ground.js'

function describedCut({ at, disks }: PairCut, records: readonly LogRecord[]): string {
  const of = disks.map(({ certain, lucky, sectors }) => {
    const torn = sectors === undefined ? undefined : records[lucky.at(-1) ?? -1]
    const tear = torn && `, ${sectors} sectors of the ${torn.length} bytes at ${torn.offset}`
    return `${certain} records and ${lucky.length} more${tear ?? ''}`
  })
  return `the cut at ${at}: ${of.join('; ')}`
}

/** Cuts before the answer, and after it. */
const amounts = { before: 6, after: 2 }
const marks = { begun: 'begun', answered: 'answered', over: 'over' } as const

export async function exploreByLog(
  history: History,
  seed: number,
  logged: LoggedDisks,
  replayed: ReplayedDisks,
): Promise<Explored> {
  const random = new Random(seed)
  const explored = nothingYet()
  const ground = new RealGround(logged)
  await logged.startLog()
  logged.mount()
  ground.begin()
  const { knowledge, faults } = await playPast(ground, history)
  explored.faults.push(...faults)
  const last = history[history.length - 1] as Publication
  if (mayLeadElsewhere(last, ground.look())) {
    logged.unmount()
    await logged.endLog()
    return explored
  }
  const before = ground.look()
  logged.mark(marks.begun)
  const answer = (await ground.publish(last)) ?? { outcomes: [], told: '' }
  logged.mark(marks.answered)
  countOutcomes(explored, answer)
  const after = ground.look()
  explored.faults.push(...faultsOfCall(last, { before, meanwhile: answer.meanwhile ?? before, after }, answer))
  const under = knowledge.copy()
  if (last.meanwhile) under.changedBy(last.meanwhile)
  const allowed = under.allowed(before, last, new Set())
  noteAnswer(knowledge, last, answer, after)
  const allowedThen = knowledge.allowed(after, undefined, new Set())
  logged.mark(marks.over)
  logged.unmount()

  const records = await logged.endLog()
  const indexOf = (mark: string): number =>
    records.findIndex(({ kind, data }) => kind === 'mark' && data.toString() === JSON.stringify(mark))
  const [begun, answered, over] = [marks.begun, marks.answered, marks.over].map(indexOf) as [number, number, number]
  replayed.follow(records)
  const cuts = [
    ...drawCuts(records, [begun, answered], amounts.before, random),
    ...drawCuts(records, [answered, over], amounts.after, random),
  ]
  for (const cut of cuts) {
    if (explored.faults.length > 0) break
    replayed.become(cut)
    try {
      replayed.mountAll()
    } catch (error) {
      explored.faults.push(`the file system is lost: ${messageOf(error)}, of ${describedCut(cut, records)}`)
      replayed.unmount()
      break
    }
    const survivor = new RealGround(replayed)
    const isOver = cut.at > answered
    judgeCut(explored, survivor.look(), isOver ? knowledge : under, isOver ? allowedThen : allowed)
    if (explored.faults.length === 0) await recover(survivor, last, random, explored)
    replayed.unmount()
  }
  return explored
}
