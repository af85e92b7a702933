import { afterSuccess, type Effort, prepared } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import type { Step } from './scenario.js'

/** Steps in one chain. */
const longest = 6

/**
 * Chains drawn at random: processes that end well, are killed, or lose their power, one after the other on what the one
 * before left; each crash state is judged, and at the end a run must succeed.
 */
export async function exploreChains(explorer: Explorer, effort: Effort): Promise<void> {
  const { random, scenario } = explorer
  const start = await prepared(explorer)
  const steps = [...scenario.successors, ...scenario.before, scenario.step]
  for (let chain = 0; chain < effort.chains; chain++) {
    let position: Position | undefined = { ...start, disk: start.disk.fork() }
    for (let link = 0; link < longest; link++) {
      position = await oneLink(explorer, position, random.pick(steps), effort)
      if (!position) break
    }
    if (!position) continue
    const last = await explorer.play({ ...position, disk: position.disk.fork() }, scenario.step, 'in the end')
    await afterSuccess(explorer, last, scenario.step, effort, true)
  }
}

async function oneLink(
  explorer: Explorer,
  position: Position,
  step: Step,
  effort: Effort,
): Promise<Position | undefined> {
  const { random } = explorer
  const disk = position.disk.fork()
  const run = await explorer.play({ ...position, disk }, step, 'step', { record: true })
  const instant = random.pick(run.instants)
  const stopped = explorer.at(position, instant, step)
  switch (random.below(3)) {
    case 0:
      await afterSuccess(explorer, run, step, effort)
      return run
    case 1:
      return explorer.visible(stopped)
    default: {
      const survivors: Position[] = []
      explorer.cut(stopped, effort.fewer, (survivor) => survivors.push(survivor))
      return survivors.length > 0 ? random.pick(survivors) : undefined
    }
  }
}
