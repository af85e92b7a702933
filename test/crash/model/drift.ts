import { find, missing, type Target } from './content.js'
import { afterSuccess, at, type Effort, prepared } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import { settledLedger } from './ledger.js'
import type { ModelDisk } from './model-disk.js'

/**
 * The step stops at each instant; then a person edits the target by hand, durably; then, on the same kernel and after a reboot, a process
 * publishes: in each case, a success is durable and no reader sees a torn content.
 */
export async function exploreDrift(explorer: Explorer, effort: Effort): Promise<void> {
  const { scenario, random } = explorer
  const start = await prepared(explorer)
  const played = await explorer.play({ ...start, disk: start.disk.fork() }, scenario.step, 'step', {
    record: true,
  })
  for (const instant of played.instants) {
    if (random.below(Math.ceil(effort.second / 10)) > 0) continue
    const stopped = explorer.visible(at(start, instant, scenario.step))
    const edited = stopped && edit(explorer, stopped)
    if (!edited) continue
    const rebooted: Position[] = []
    explorer.cut(edited, 1, (survivor) => rebooted.push(survivor))
    for (const position of [edited, ...rebooted]) {
      for (const successor of scenario.successors) {
        const disk = position.disk.fork()
        const run = await explorer.play({ ...position, disk }, successor, 'next run', { record: true })
        // Where no whole publication is on record, the edited content may be foreign: holdfast leaves it alone.
        const refused = run.outcomes.some((one) => one && 'error' in one && one.error.reason === 'TargetForeign')
        if (!refused) await afterSuccess(explorer, run, successor, effort, random.below(4) === 0)
        for (const next of run.instants) explorer.cut(at(position, next, successor), effort.fewer)
      }
    }
  }
}

function edit(explorer: Explorer, position: Position): Position | undefined {
  const disk = position.disk.fork()
  for (const { target } of explorer.catalogues) append(disk, target)
  disk.syncAll()
  const ledgers = explorer.catalogues.map((catalogue, index) => {
    const ledger = position.ledgers[index]
    if (!ledger || ledger.visible === missing) return settledLedger(missing)
    const name = `${ledger.visible}, edited`
    catalogue.learn(name, disk, ledger.visible)
    return { visible: name, possible: new Set([name]), linked: new Set([...ledger.linked, name]) }
  })
  if (ledgers.every(({ visible }) => visible === missing)) return undefined
  return { disk, ledgers, trail: [...position.trail, 'killed; the target is edited'] }
}

/** Adds to the first file that is found. */
function append(disk: ModelDisk, { path, form }: Target): void {
  const data = form === 'symlink' ? find(disk, `${path}/..data`)?.now.data : undefined
  let inode = find(disk, data === undefined ? path : `${path}/${data}`)
  while (inode?.type === 'directory') {
    const [first] = [...inode.now.entries.keys()].sort()
    inode = first === undefined ? undefined : disk.child(inode.number, first)
  }
  if (inode) disk.append(inode.number, ' edited')
}
