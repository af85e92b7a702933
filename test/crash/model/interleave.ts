import { type Effort, prepared } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import { attemptLedger } from './ledger.js'
import type { ModelProcess } from './model-process.js'
import type { Played } from './play.js'
import type { Step } from './scenario.js'

/**
 * A second process comes at each call of the first one's step, while that one waits: they exclude each other, each success is true, and
 * they mix and leave nothing.
 */
export async function exploreInterleavings(explorer: Explorer, effort: Effort): Promise<void> {
  const { scenario } = explorer
  const start = await prepared(explorer)
  let calls = 0
  await explorer.play({ ...start, disk: start.disk.fork() }, scenario.step, 'step', {
    prepare: (process) => {
      process.before = () => {
        calls += 1
      }
    },
  })
  const second = scenario.successors[scenario.successors.length - 1] ?? scenario.step
  for (let call = 0; call < calls; call++) await meet(explorer, start, second, call, effort)
}

async function meet(explorer: Explorer, start: Position, second: Step, call: number, effort: Effort): Promise<void> {
  const { scenario } = explorer
  const disk = start.disk.fork()
  let other: (Played & Position) | undefined
  let count = 0
  const first = await explorer.attempt({ ...start, disk }, scenario.step, 'the first', {
    prepare: (process: ModelProcess) => {
      process.before = async () => {
        if (count++ === call) other = await explorer.attempt({ ...start, disk }, second, `the second, at call ${call},`)
      }
    },
  })
  if (!other) return
  const trail = [...other.trail, first.trail[first.trail.length - 1] ?? '']
  const ledgers = start.ledgers.map((ledger, index) => {
    const both = [scenario.step[index], second[index]].filter((wanted) => wanted !== undefined)
    return both.reduce(attemptLedger, ledger)
  })
  const found = explorer.visible({ disk, ledgers, trail })
  if (!found) return
  for (const [index, catalogue] of explorer.catalogues.entries()) {
    const [one, two] = [first, other].map(({ outcomes }) => outcomes[index])
    const wins = [one, two].map((outcome) => outcome !== undefined && !('error' in outcome))
    const visible = found.ledgers[index]?.visible
    const expected = wins[0] ? [scenario.step[index]] : wins[1] ? [second[index]] : [start.ledgers[index]?.visible]
    // Where the second came before the lock and ended well, the first comes after it.
    if (visible !== undefined && !expected.includes(visible)) {
      explorer.report(`${catalogue.target.path} holds ${visible}, not ${expected.join(' or ')}: two processes`, trail)
    }
  }
  explorer.cut(found, effort.fewer)
  const last = await explorer.play({ ...found, trail }, scenario.step, 'in the end')
  if (!last.success) explorer.report('does not succeed after two processes', last.trail)
  explorer.finished(last, scenario.step)
}
