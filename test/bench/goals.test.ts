/** What the benchmark calls a goal that is met. */
import t from 'tap'
import { beyondFlushes, describeGoal, goalsOfBatch, goalsOfOneDirectory, isMet } from '../../bench/goals.js'
import { judge, limitsOfBatch } from '../../bench/limits.js'

/** Runs that each take their flushes of 10 ms, and `beyond` ms more. */
function runs(beyond: readonly number[], written = 0) {
  return beyond.map((more, index) => ({ flushes: 4 + index, milliseconds: 10 * (4 + index) + more, written }))
}

await t.test('what a run takes beyond its flushes is the median of the runs, each less its own flushes', async (t) => {
  t.equal(beyondFlushes(runs([7, 30, 5]), 10), 7)
  t.ok(Number.isNaN(beyondFlushes([], 10)))
})

await t.test('a goal is met up to its figure, and not by a figure that is none', async (t) => {
  const goal = { what: 'beyond its flushes', goal: 6, unit: ' ms' }
  t.same(
    [6, 6.1, NaN].map((figure) => isMet({ ...goal, figure })),
    [true, false, false],
  )
  t.equal(describeGoal({ ...goal, figure: 6.6 }), 'beyond its flushes: 6.6 ms, goal 6.0 ms')
})

await t.test('one directory is judged by its number of files, a batch beside one of its directories', async (t) => {
  const contest = { ours: runs([50, 60, 70], 200 * 4096 * 1.5), compared: runs([10, 20, 30]) }
  const result = judge('ext4', 'something', 'one directory', limitsOfBatch, contest)
  const figures = (goals: ReturnType<typeof goalsOfBatch>): number[][] =>
    goals.map(({ figure, goal }) => [figure, goal])
  t.same(figures(goalsOfOneDirectory(contest.ours, 200, 4096, 10)), [
    [60, 45],
    [1.5, 1.3],
  ])
  t.same(figures(goalsOfOneDirectory(contest.ours, 2, 4096, 10)), [[60, 6]])
  t.same(figures(goalsOfOneDirectory(contest.ours, 3, 4096, 10)), [])
  t.same(figures(goalsOfBatch(result, 10)), [
    [60, 35],
    [110 / 70, 1.8],
  ])
})
