import { faultOfRepeat } from '../judge/answers.js'
import type { Explorer } from './explorer.js'
import { type Position } from './explorer.js'
import { missing } from './content.js'
import { settledLedger } from './ledger.js'
import type { Played } from './play.js'
import { changeRecords, initialDisk, type Step } from './scenario.js'

/** How far to go: limits of crash states for one instant, and how many of them are gone on with. */
export interface Effort {
  /** Crash states of each instant of the step itself. */
  readonly states: number
  /** Crash states after a success, and of instants deeper down. */
  readonly fewer: number
  /** Out of how many disks met one is recovered from and crashes once more while it is. */
  readonly second: number
  /** Chains drawn at random. */
  readonly chains: number
}

/** The position in which the scenario's step begins. */
export async function prepared(explorer: Explorer): Promise<Position> {
  const { scenario } = explorer
  const disk = initialDisk(scenario)
  for (const catalogue of explorer.catalogues) if (scenario.foreign) catalogue.learn('foreign', disk)
  const ledgers = explorer.catalogues.map((catalogue) => settledLedger(catalogue.visible(disk).name ?? missing))
  let position: Position = { disk, ledgers, trail: [scenario.name] }
  for (const step of scenario.before) {
    const played = await explorer.play(position, step, 'before:')
    if (!played.success) explorer.report('a step before does not succeed', played.trail)
    position = played
  }
  return scenario.careless ? carelesslyChanged(explorer, position) : position
}

async function carelesslyChanged(explorer: Explorer, position: Position): Promise<Position> {
  const { scenario } = explorer
  const { disk } = position
  changeRecords(scenario, disk, 0o666)
  const played = await explorer.play({ ...position, disk: disk.fork() }, scenario.step, 'others may write:', {
    record: true,
  })
  if (played.success || played.instants.length > 1)
    explorer.report('a record to which others may write is not refused before any change', played.trail)
  changeRecords(scenario, disk, 0o660)
  return position
}

/** The promises after a success: no leftovers, and content that is durable through any power cut, and known to be so. */
export async function afterSuccess(
  explorer: Explorer,
  played: Played & Position,
  step: Step,
  effort: Effort,
  again = false,
): Promise<void> {
  if (!played.success) {
    explorer.report('does not succeed', played.trail)
    return
  }
  explorer.finished(played, step)
  // Removed content does not come back, nor does its record; inside a target nothing old does.
  const removed = step.every((wanted) => wanted === missing)
  explorer.cut(played, effort.fewer, (survivor) => {
    if (removed) explorer.tidy(survivor, step)
    else explorer.pure(survivor, step)
  })
  if (!again) return
  const repeated = await explorer.play({ ...played, disk: played.disk.fork() }, step, 'again')
  reportRepeat(explorer, repeated)
  const survivors: Position[] = []
  explorer.cut(repeated, effort.fewer, (survivor) => survivors.push(survivor))
  if (survivors.length === 0) return
  const survivor = explorer.random.pick(survivors)
  const rebooted = await explorer.play({ ...survivor, disk: survivor.disk.fork() }, step, 'again')
  reportRepeat(explorer, rebooted)
}

function reportRepeat(explorer: Explorer, { outcomes, trail }: Played & Position): void {
  explorer.scenario.targets.forEach(({ path }, index) => {
    const [outcome] = outcomes.slice(index)
    const fault = outcome && faultOfRepeat(path, outcome)
    if (fault !== undefined) explorer.report(fault, trail)
  })
}

/** Every instant of the step: a power cut in every way, and then each successor; one in some crashes again meanwhile. */
export async function explorePowerCuts(explorer: Explorer, effort: Effort): Promise<void> {
  const { scenario } = explorer
  const start = await prepared(explorer)
  const played = await explorer.play({ ...start, disk: start.disk.fork() }, scenario.step, 'step', {
    record: true,
    rollback: scenario.rollback,
  })
  await afterSuccess(explorer, played, scenario.step, { ...effort, fewer: effort.states }, true)
  explorer.remembered(played)
  for (const { what, disk } of played.instants) explorer.used(disk, [...start.trail, what])
  const recovered = new Set<string>()
  for (const instant of played.instants) {
    const survivors: Position[] = []
    explorer.cut(explorer.at(start, instant, scenario.step), effort.states, (survivor) => survivors.push(survivor))
    for (const survivor of survivors) {
      const key = explorer.keyOf(survivor)
      if (recovered.has(key)) continue
      recovered.add(key)
      explorer.remembered(survivor)
      await recover(explorer, survivor, effort)
    }
  }
}

async function recover(explorer: Explorer, survivor: Position, effort: Effort): Promise<void> {
  const { scenario, random } = explorer
  const [same = scenario.step] = scenario.successors
  const other = random.pick(scenario.successors)
  const twice = random.below(effort.second) === 0
  for (const successor of other === same ? [same] : [same, other]) {
    const run = await explorer.play({ ...survivor, disk: survivor.disk.fork() }, successor, 'recovery', {
      record: twice,
    })
    await afterSuccess(explorer, run, successor, effort, twice)
    explorer.remembered(run)
    if (!twice) continue
    for (const instant of run.instants) {
      const deeper: Position[] = []
      explorer.cut(explorer.at(survivor, instant, successor), effort.fewer, (position) => deeper.push(position))
      const chosen = random.pick(deeper.length > 0 ? deeper : [survivor])
      const next = random.pick(scenario.successors)
      const last = await explorer.play({ ...chosen, disk: chosen.disk.fork() }, next, 'recovery')
      await afterSuccess(explorer, last, next, effort)
    }
  }
}

/** Every instant of the step: the process is killed, a successor runs on what the kernel holds, and then the power is cut. */
export async function exploreKills(explorer: Explorer, effort: Effort): Promise<void> {
  const { scenario, random } = explorer
  const start = await prepared(explorer)
  const played = await explorer.play({ ...start, disk: start.disk.fork() }, scenario.step, 'step', {
    record: true,
    rollback: scenario.rollback,
  })
  for (const instant of played.instants) {
    const killed = explorer.at(start, instant, scenario.step)
    const found = explorer.visible(killed)
    if (!found) continue
    // Visible, and not known to be durable: what the next ones may delete matters most here.
    const unsettled = found.ledgers.some(({ visible }, index) => visible !== start.ledgers[index]?.visible)
    const third = unsettled ? Math.ceil(effort.second / 8) : effort.second
    for (const successor of scenario.successors) {
      const run = await explorer.play({ ...found, disk: found.disk.fork() }, successor, 'killed; successor', {
        record: true,
      })
      await afterSuccess(explorer, run, successor, effort, random.below(4) === 0)
      for (const { what, disk } of run.instants) explorer.used(disk, [...run.trail, what])
      for (const next of run.instants) {
        const second = explorer.at(found, next, successor)
        const survivors: Position[] = []
        explorer.cut(second, effort.fewer, (survivor) => survivors.push(survivor))
        if (random.below(effort.second) === 0 && survivors.length > 0) {
          const survivor = random.pick(survivors)
          const other = random.pick(scenario.successors)
          const last = await explorer.play({ ...survivor, disk: survivor.disk.fork() }, other, 'recovery')
          await afterSuccess(explorer, last, other, effort)
        }
        if (random.below(third) === 0) await killedAgain(explorer, second, effort)
      }
    }
  }
}

async function killedAgain(explorer: Explorer, position: Position, effort: Effort): Promise<void> {
  const found = explorer.visible(position)
  if (!found) return
  const step = explorer.random.pick(explorer.scenario.successors)
  const run = await explorer.play({ ...found, disk: found.disk.fork() }, step, 'killed; successor', {
    record: true,
  })
  await afterSuccess(explorer, run, step, effort)
  for (const instant of run.instants) explorer.cut(explorer.at(found, instant, step), effort.fewer)
}
