import { missing, textOf, find } from './content.js'
import { type Effort, prepared } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import { moveAway, putBack, puts } from './foreigners.js'
import { settledLedger } from './ledger.js'
import type { Instant } from './play.js'

/** What the ledger calls what the other program has put there. */
const theirs = 'theirs'

/**
 * Another program puts its own, durably, under the target's name in the last instant before an exchange, which takes it out; and the
 * process is stopped at each instant from there on: killed, or cut off. Through all of its successors, which stop at each instant in turn,
 * the foreign content is somewhere, whole. A successor that finds it under the target's name may replace it, as it would at any other time:
 * the search ends there.
 */
export async function exploreTakenOut(explorer: Explorer, effort: Effort): Promise<void> {
  const { scenario } = explorer
  const [target] = scenario.targets
  if (target?.form !== 'exchange' || scenario.targets.length > 2) return
  const start = await prepared(explorer)
  for (const put of puts.exchange) {
    if (start.ledgers[0]?.visible === missing) continue
    const intruded = await intrude(explorer, start, target.path, put)
    if (intruded === undefined) continue
    explorer.counts.faults += 1
    for (const instant of intruded.instants) await stop(explorer, intruded, instant, effort)
    explorer.theirs = undefined
  }
}

interface Intruded extends Position {
  /** From when the foreign content is there. */
  readonly instants: readonly Instant[]
  readonly before: Position
}

async function intrude(
  explorer: Explorer,
  start: Position,
  path: string,
  put: (typeof puts.exchange)[number],
): Promise<Intruded | undefined> {
  const disk = start.disk.fork()
  const instants: Instant[] = []
  const name = path.slice(path.lastIndexOf('/') + 1)
  const run = await explorer.attempt({ ...start, disk }, explorer.scenario.step, 'a foreign program comes first;', {
    prepare: (process) => {
      process.before = (call, to) => {
        if (instants.length > 0 || call !== 'rename' || to !== name) return
        moveAway(disk, path)
        put(disk, path)
        disk.syncAll()
        explorer.catalogues[0]?.learn(theirs, disk)
        const inode = find(disk, path)
        explorer.theirs = inode && textOf(disk, inode)
        const keep = (what: string): unknown => instants.push({ what, disk: disk.fork() })
        keep('the foreign content is there')
        disk.changed = keep
      }
    },
  })
  if (instants.length === 0) return undefined
  const ledgers = start.ledgers.map((ledger, index) => (index === 0 ? settledLedger(theirs) : ledger))
  return { disk, ledgers, trail: run.trail, instants, before: start }
}

/** A kill there, and a power cut there; and the next process. */
async function stop(explorer: Explorer, intruded: Intruded, instant: Instant, effort: Effort): Promise<void> {
  const stopped = explorer.at(intruded, instant, explorer.scenario.step, intruded.before)
  const found = explorer.visible(stopped)
  const positions: Position[] = found ? [found] : []
  explorer.cut(stopped, effort.fewer, (survivor) => positions.push(survivor))
  const back = found && repaired(explorer, found, intruded.before)
  if (back) positions.push(back)
  for (const position of positions) await goOn(explorer, position, effort, 2)
}

/** A person removes the published content, and gives the old its name again, durably: then the newest record does not count any more. */
function repaired(explorer: Explorer, position: Position, before: Position): Position | undefined {
  const [ledger, ...others] = position.ledgers
  const [target] = explorer.scenario.targets
  const [old] = before.ledgers
  const disk = position.disk.fork()
  if (!old || !target || ledger?.visible === theirs || !putBack(disk, target.path)) return undefined
  disk.syncAll()
  const trail = [...position.trail, 'the old is put back']
  return { disk, ledgers: [settledLedger(old.visible), ...others], trail }
}

/** Each successor; it stops at each instant, and the next one comes, as often as `depth` says. */
async function goOn(explorer: Explorer, position: Position, effort: Effort, depth: number): Promise<void> {
  if (position.ledgers[0]?.visible === theirs) return
  const { scenario, random } = explorer
  const successors = depth > 1 ? scenario.successors : [random.pick(scenario.successors)]
  for (const successor of successors) {
    const disk = position.disk.fork()
    const run = await explorer.play({ ...position, disk }, successor, 'successor', { record: depth > 1 })
    if (run.success) explorer.finished(run, successor)
    else explorer.report('does not succeed beside what is foreign', run.trail)
    for (const instant of run.instants) {
      // The first changes are those that put the foreign content into quarantine: what comes later is drawn.
      if (run.instants.indexOf(instant) > 4 && random.below(effort.second / 10) > 0) continue
      const stopped = explorer.at(position, instant, successor)
      const found = explorer.visible(stopped)
      const positions: Position[] = found ? [found] : []
      explorer.cut(stopped, effort.fewer, (survivor) => positions.push(survivor))
      const next = positions.length > 0 ? random.pick(positions) : undefined
      if (next) await goOn(explorer, next, effort, depth - 1)
    }
  }
}
