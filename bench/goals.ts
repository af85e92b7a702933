/**
 * What holdfast is to cost one day, beside what limits.ts promises of it today: how long a publication takes beyond its flushes, how
 * much it writes, and what an agent takes of its node. Milliseconds are of one machine, so that `--check` fails on no goal; `--goals` does.
 */
import { idleWakeups, type Footprint } from './footprint.js'
import type { Result } from './limits.js'
import { median, type Cost, type WrittenCost } from './measure.js'

/** Milliseconds that a run may take beyond its flushes, by the number of files. */
const beyondGoals = new Map([
  [2, 6],
  [50, 15],
  [200, 45],
])
const batchBeyondGoal = 35
/** Time of the batch, as a multiple of one directory. */
const batchGoal = 1.8
/** Bytes written, as a multiple of the content. */
const writtenGoals = new Map([[200, 1.3]])

/** Anonymous memory of an agent at rest, in MiB, by the number of its Secrets. */
const memoryGoals = new Map([
  [50, 18],
  [500, 30],
])
/**
 * Wakeups of an agent in a second without a change, by the number of its Secrets: its pings, its looks at the credentials, and the
 * bookmarks, which the API server sends on each watch about once a minute, many in one packet.
 */
const wakeupGoals = new Map([
  [50, 1],
  [500, 3],
])
/** Milliseconds of processor time that a change takes, with all that follows from it. */
const changeGoal = 5

export interface Goal {
  readonly what: string
  readonly figure: number
  readonly goal: number
  readonly unit: string
}

/** What runs take beyond the time that the disk's flushes take one after the other. */
export function beyondFlushes(costs: readonly Cost[], flushTime: number): number {
  return median(costs.map(({ milliseconds, flushes }) => milliseconds - flushes * flushTime))
}

/** Of one directory of so many files of this size. */
export function goalsOfOneDirectory(
  ours: readonly WrittenCost[],
  count: number,
  bytes: number,
  flushTime: number,
): Goal[] {
  const [beyond, written] = [beyondGoals.get(count), writtenGoals.get(count)]
  return [
    ...(beyond === undefined
      ? []
      : [{ what: 'beyond its flushes', figure: beyondFlushes(ours, flushTime), goal: beyond, unit: ' ms' }]),
    ...(written === undefined
      ? []
      : [
          {
            what: 'written, as a multiple of the content',
            figure: median(ours.map(({ written }) => written)) / (count * bytes),
            goal: written,
            unit: '×',
          },
        ]),
  ]
}

/** Of a batch in one parent, beside one directory of it. */
export function goalsOfBatch({ rounds, ours, compared }: Result, flushTime: number): Goal[] {
  return [
    { what: 'beyond its flushes', figure: beyondFlushes(rounds.ours, flushTime), goal: batchBeyondGoal, unit: ' ms' },
    {
      what: 'its time, as a multiple of one directory’s',
      figure: ours.milliseconds / compared.milliseconds,
      goal: batchGoal,
      unit: '×',
    },
  ]
}

export function goalsOfAgent(footprint: Footprint): Goal[] {
  const [memory, wakeups] = [memoryGoals.get(footprint.watched), wakeupGoals.get(footprint.watched)]
  return [
    ...(memory === undefined
      ? []
      : [{ what: 'anonymous memory', figure: footprint.anonymous, goal: memory, unit: ' MiB' }]),
    ...(wakeups === undefined
      ? []
      : [{ what: 'wakeups at rest', figure: idleWakeups(footprint), goal: wakeups, unit: ' a second' }]),
    { what: 'processor time of a change', figure: footprint.change, goal: changeGoal, unit: ' ms' },
  ]
}

/** Written so that a figure that is not a number is not met. */
export const isMet = ({ figure, goal }: Goal): boolean => figure <= goal

export function describeGoal({ what, figure, goal, unit }: Goal): string {
  const digits = unit === '×' ? 2 : 1
  return `${what}: ${figure.toFixed(digits)}${unit}, goal ${goal.toFixed(digits)}${unit}`
}
